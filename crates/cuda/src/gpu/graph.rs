//! Sequences as CUDA graphs: a node per kernel, an edge per dependency.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::driver;
use crate::{DeviceError, Step};

/// A graph that is ready to be launched.
pub(super) struct Executable {
    context: sys::CUcontext,
    graph: sys::CUgraphExec,
}

// SAFETY: driver handles may be used from any thread that has set the context.
unsafe impl Send for Executable {}
// SAFETY: as above; launches of one graph are ordered by their stream.
unsafe impl Sync for Executable {}

/// Builds a graph.
///
/// # Safety
/// As for [`Device::prepare`](crate::Device::prepare); the context is the thread's, the functions are those of the kernels by number.
pub(super) unsafe fn build(
    context: sys::CUcontext,
    functions: &[sys::CUfunction],
    steps: &[Step<'_>],
    stream: sys::CUstream,
) -> Result<Executable, DeviceError> {
    let mut graph = Template(ptr::null_mut());
    // SAFETY: it writes a handle.
    driver(
        "graph",
        unsafe { sys::cuGraphCreate(&mut graph.0, 0) }.result(),
    )?;
    let mut nodes: Vec<sys::CUgraphNode> = Vec::with_capacity(steps.len());
    for step in steps {
        let [x, y, z] = step.launch.grid;
        let mut params: [*mut c_void; 1] = [step.params.as_ptr().cast_mut().cast()];
        let node_params = sys::CUDA_KERNEL_NODE_PARAMS {
            func: functions[step.launch.kernel as usize],
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: step.launch.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: step.launch.shared_bytes,
            kernelParams: params.as_mut_ptr(),
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: context,
        };
        let after: Vec<sys::CUgraphNode> = step.after.iter().map(|&step| nodes[step]).collect();
        let mut node = ptr::null_mut();
        // SAFETY: the nodes are this graph's, and the kernel's parameters are copied before the call returns.
        let added = unsafe {
            sys::cuGraphAddKernelNode_v2(
                &mut node,
                graph.0,
                after.as_ptr(),
                after.len(),
                &node_params,
            )
        };
        driver("graph", added.result())?;
        nodes.push(node);
    }
    // SAFETY: the graph is complete, and the stream alive.
    unsafe {
        let flags = sys::CUgraphInstantiate_flags(0);
        let graph = driver("graph", result::graph::instantiate(graph.0, flags))?;
        let executable = Executable { context, graph };
        driver("graph", result::graph::upload(graph, stream))?;
        Ok(executable)
    }
}

impl Executable {
    /// # Safety
    /// As for [`Device::run`](crate::Device::run); the context is the thread's.
    pub(super) unsafe fn launch(&self, stream: sys::CUstream) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        driver("graph", unsafe {
            result::graph::launch(self.graph, stream)
        })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: it is ours and destroyed once; a launch that still runs is finished first. Errors leave nothing to do.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::graph::exec_destroy(self.graph);
        }
    }
}

/// A graph as it is built.
struct Template(sys::CUgraph);

impl Drop for Template {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: it is ours and destroyed once. An error leaves nothing to do.
            let _ = unsafe { result::graph::destroy(self.0) };
        }
    }
}
