//! Prompts in passes and guessed tokens on ciphertexts: what decoding continues from is what one token after the other leaves.

use std::sync::Arc;

use taciturn_ckks::{Ciphertext, Encoder, Parameters, named};
use taciturn_client::Client;
use taciturn_graph::{CostTable, Graph, Level, Optimal, Plan, key_request};
use taciturn_models::random::RandomSpec;
use taciturn_models::{
    CalibrationOptions, Checkpoint, ClearCache, ClearModel, StepModel, calibrate, measure_bounds,
};
use taciturn_server::{PassPlan, ServerError, Session, StepOutput};

const CONTEXT: usize = 16;
const TOKENS: usize = 4;
/// Of logits, whose spread is about one: approximations for 14 bits, and the noise of small parameters.
const TOLERANCE: f64 = 0.05;

struct Exchange {
    checkpoint: Checkpoint,
    params: Parameters,
    model: Arc<StepModel>,
    client: Client,
    plans: [Plan; 2],
    session: Session,
}

impl Exchange {
    fn new(public: &[u32]) -> Self {
        let spec = RandomSpec {
            width: 16,
            heads: 2,
            layers: 2,
            hidden: 32,
            vocabulary: 64,
            ..RandomSpec::default()
        };
        let folder = tempfile::tempdir().unwrap();
        spec.write(folder.path()).unwrap();
        let checkpoint = Checkpoint::load(folder.path()).unwrap();
        let tokens: Vec<u32> = (0..4000)
            .map(|i| i * i * 97 % spec.vocabulary as u32)
            .collect();
        let options = CalibrationOptions {
            context: CONTEXT,
            margin: 0.6,
            ..CalibrationOptions::default()
        };
        let mut calibration = calibrate(&checkpoint, &tokens, &options).unwrap();
        measure_bounds(&checkpoint, &mut calibration, &tokens, 32).unwrap();
        let params = named("insecure-n11").unwrap();
        let slots = params.slots();
        let model = StepModel::after(&checkpoint, &calibration, slots, CONTEXT, public).unwrap();
        let costs = CostTable::reference(slots, Level(params.max_level().0 as u32));
        let pass = model.pass(TOKENS).unwrap();
        let plans = pass.plan_both(&costs, &Optimal::default()).unwrap();
        assert_eq!(plans[0].caches, plans[1].caches);
        let mut client = Client::new(&params).unwrap();
        let encoder = Encoder::new(&params);
        let mut request = key_request(&encoder, &plans[0]).unwrap();
        request.merge(&key_request(&encoder, &plans[1]).unwrap());
        let keys = client.requested_keys(&request, |_, _| {}).unwrap();
        let model = Arc::new(model);
        let plan = plans[0].clone();
        let mut session =
            Session::new(model.clone(), plan, &params, keys, None, |_, _| {}).unwrap();
        let passes = PassPlan {
            tokens: TOKENS,
            plan: plans[1].clone(),
            logits: true,
        };
        session.permit_passes(passes).unwrap();
        Exchange {
            checkpoint,
            params,
            model,
            client,
            plans,
            session,
        }
    }

    fn input(&mut self, slots: &[f64], plan: usize) -> Ciphertext {
        let level = self.plans[plan]
            .node(StepModel::input_name())
            .unwrap()
            .level();
        self.client
            .encrypt(slots, level)
            .unwrap()
            .expand(&self.params)
    }

    fn several(&mut self, tokens: &[u32]) -> Ciphertext {
        self.several_at(tokens, self.session.position())
    }

    fn several_at(&mut self, tokens: &[u32], position: usize) -> Ciphertext {
        let model = self.model.clone();
        let slots = model.pass(TOKENS).unwrap().embed(tokens, position).unwrap();
        self.input(&slots, 1)
    }

    fn decrypted(&self, graph: &Graph, answer: &StepOutput) -> Vec<Vec<f64>> {
        let outputs = self.model.logit_outputs(graph).into_iter();
        outputs
            .map(|(name, layout)| {
                let (_, value) = answer.outputs.iter().find(|(n, _)| *n == name).unwrap();
                let period = layout.period() * graph.tokens();
                self.client.decrypt(value, period).unwrap().to_vec()
            })
            .collect()
    }

    /// The logits after each of some guessed tokens.
    fn guess(&mut self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let start = self.session.position();
        let input = self.several(tokens);
        let answer = self
            .session
            .guess(input, tokens.len(), |_, _, _| {})
            .unwrap();
        assert_eq!(self.session.position(), start);
        let model = self.model.clone();
        let pass = model.pass(TOKENS).unwrap();
        let graph = pass.graph(start..start + tokens.len()).unwrap();
        let slots = self.decrypted(&graph, &answer);
        (start..start + tokens.len())
            .map(|position| model.token_logits(&graph, &slots, position % TOKENS))
            .collect()
    }

    fn step(&mut self, token: u32) -> Vec<f64> {
        let position = self.session.position();
        let slots = self.model.embed(token, position).unwrap();
        let input = self.input(&slots, 0);
        let answer = self.session.step(input, |_, _, _| {}).unwrap();
        let graph = self.model.graph(position).unwrap();
        self.model.logits(&graph, &self.decrypted(&graph, &answer))
    }
}

fn clear_after(model: &ClearModel<'_>, tokens: &[u32]) -> (ClearCache, Vec<f64>) {
    let mut cache = model.cache();
    let mut logits = model.step(&mut cache, model.config().bos).unwrap();
    for &token in tokens {
        logits = model.step(&mut cache, token).unwrap();
    }
    (cache, logits)
}

fn assert_close(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let errors = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let worst = errors.fold(0.0, f64::max);
    assert!(worst < TOLERANCE, "{worst}, {what}");
}

#[test]
fn guesses_are_checked_and_only_the_accepted_stay() {
    let public = [7, 3];
    let mut exchange = Exchange::new(&public);
    let checkpoint = exchange.checkpoint.clone();
    let clear = ClearModel::new(&checkpoint);
    assert_eq!(exchange.session.position(), 3);
    let mut tokens: Vec<u32> = public.to_vec();

    // A prompt of six, positions 3, then 4 to 7 and 8 in step.
    let prompt = [11, 5, 42, 19, 60, 2];
    for parts in [&[&prompt[..1]][..], &[&prompt[1..5], &prompt[5..]]] {
        let mut start = exchange.session.position();
        let mut inputs = Vec::new();
        for part in parts {
            inputs.push((exchange.several_at(part, start), part.len()));
            start += part.len();
            tokens.extend(*part);
        }
        let absorbed = exchange.session.absorb_several(inputs, |_, _, _| {});
        assert_eq!(absorbed.unwrap().outputs.len(), parts.len());
    }
    assert_eq!(exchange.session.position(), 9);

    // Three guesses, of which one is accepted; another two, of which none is.
    for (guessed, accepted) in [(&[33, 21, 8][..], 1), (&[50, 51][..], 0)] {
        let logits = exchange.guess(guessed);
        for (i, logits) in logits.iter().enumerate() {
            let all = [&tokens[..], &guessed[..=i]].concat();
            let expected = clear_after(&clear, &all).1;
            assert_close(logits, &expected, &format!("guess {i} of {guessed:?}"));
        }
        exchange.session.accept(accepted).unwrap();
        tokens.extend(&guessed[..accepted]);
        assert_eq!(exchange.session.position(), 1 + tokens.len());
    }

    // Decoding continues, and a pass continues from that.
    let logits = exchange.step(29);
    tokens.push(29);
    assert_close(&logits, &clear_after(&clear, &tokens).1, "one token");
    let logits = exchange.guess(&[17]);
    exchange.session.accept(1).unwrap();
    tokens.push(17);
    assert_close(&logits[0], &clear_after(&clear, &tokens).1, "a pass of one");
    let logits = exchange.step(44);
    tokens.push(44);
    assert_close(&logits, &clear_after(&clear, &tokens).1, "the last");

    // What is not there cannot be accepted, and a block cannot be left.
    assert!(matches!(
        exchange.session.accept(1),
        Err(ServerError::Guess { .. })
    ));
    exchange.session.restart();
    let input = exchange.several(&[1]);
    let refused = exchange.session.guess(input.clone(), 2, |_, _, _| {});
    assert!(matches!(refused, Err(ServerError::Model(_))));
    let refused = exchange
        .session
        .guess(input.clone(), usize::MAX, |_, _, _| {});
    assert!(matches!(refused, Err(ServerError::ContextFull { .. })));
    exchange.session.guess(input, 1, |_, _, _| {}).unwrap();
    assert!(exchange.session.accept(2).is_err());
    exchange.session.accept(1).unwrap();
    assert_eq!(exchange.session.position(), 4);
}
