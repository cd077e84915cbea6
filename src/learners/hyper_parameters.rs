//! Hyper-parameters of learners, each declared once: its default and its domain.

use crate::Result;

/// Declares the hyper-parameters of a learner: `name: type = default`, and the function that checks
/// the domain. Defines the struct, its `Default`, its `Deserialize` for the registry, and
/// [`HyperParameters::check`].
macro_rules! hyper_parameters {
    (
        $(#[$meta:meta])*
        pub struct $options:ident {
            $($(#[$field_meta:meta])* $name:ident: $type:ty = $default:expr $(, $check:ident)?;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[cfg_attr(
            feature = "registry",
            derive(::serde::Deserialize),
            serde(default, deny_unknown_fields)
        )]
        pub struct $options {
            $($(#[$field_meta])* pub $name: $type,)+
        }

        impl Default for $options {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl $crate::learners::HyperParameters for $options {
            fn check(&self) -> $crate::Result<()> {
                $($($check(stringify!($name), self.$name)?;)?)+
                Ok(())
            }
        }
    };
}
pub(super) use hyper_parameters;

/// The hyper-parameters of a learner.
pub trait HyperParameters: Clone + Default {
    /// An error that names the first hyper-parameter out of its domain.
    fn check(&self) -> Result<()>;
}
