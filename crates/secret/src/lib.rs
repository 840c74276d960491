//! RNS-CKKS, the secret half: secret keys, key generation, encryption and decryption.
//!
//! Only a client links this crate. Secret types have neither `Debug` nor `Clone` nor a serialization, and are wiped when dropped.

mod decrypt;
mod encrypt;
mod keygen;
mod keyholder;
mod randomness;
mod secret_key;

pub use decrypt::{Decrypted, Decryptor};
pub use encrypt::{PublicEncryptor, PublicKey, SecretEncryptor, SeededCiphertext};
pub use keygen::KeyGenerator;
pub use keyholder::Keyholder;
pub use randomness::{Randomness, RandomnessError};
pub use secret_key::{SecretKey, wipe};
