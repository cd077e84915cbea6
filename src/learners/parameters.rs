//! Hyper-parameters by name: how a learner is built from a dictionary.
//!
//! [`Parameters`] are deserialised into the struct that a learner declares by `hyper_parameters!`, with
//! errors that name the parameter.

use std::fmt::Display;

use serde::de::value::{
    Error as ValueError, MapAccessDeserializer, SeqDeserializer, StringDeserializer,
};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};

use crate::{Error, Result};

/// The value of a hyper-parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Parameter {
    /// Nothing: the default behavior of an optional parameter.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// The name of an option.
    Text(String),
    /// Numbers.
    Vector(Vec<f64>),
    /// Lists of numbers.
    Vectors(Vec<Vec<f64>>),
}

/// Hyper-parameters with their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters(Vec<(String, Parameter)>);

impl Parameters {
    /// Reads the parameters as fields of `T`.
    pub fn parse<'de, T: Deserialize<'de>>(self) -> Result<T> {
        let fields = Fields {
            rest: self.0.into_iter(),
            current: None,
        };
        T::deserialize(MapAccessDeserializer::new(fields)).map_err(|error| Error::Parameters {
            reason: error.to_string(),
        })
    }

    /// The parameters in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Parameter)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<S: Into<String>> FromIterator<(S, Parameter)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (S, Parameter)>>(parameters: I) -> Self {
        let named = parameters
            .into_iter()
            .map(|(name, value)| (name.into(), value));
        Self(named.collect())
    }
}

/// The parameters that are still to be read.
struct Fields {
    rest: std::vec::IntoIter<(String, Parameter)>,
    current: Option<(String, Parameter)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else {
            return Ok(None);
        };
        let name: StringDeserializer<ValueError> = name.clone().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ValueError> {
        let Some((name, value)) = self.current.take() else {
            return Err(ValueError::custom("a value without a name"));
        };
        let named = |error: ValueError| ValueError::custom(NamedError { name, error });
        seed.deserialize(value).map_err(named)
    }
}

/// An error of a value, with the name of its parameter.
struct NamedError {
    name: String,
    error: ValueError,
}

impl Display for NamedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.error)
    }
}

impl IntoDeserializer<'_> for Parameter {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Parameter {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self {
            Self::None => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Int(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
            Self::Text(value) => visitor.visit_string(value),
            Self::Vector(values) => visitor.visit_seq(SeqDeserializer::new(values.into_iter())),
            Self::Vectors(lists) => visitor.visit_seq(SeqDeserializer::new(lists.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self {
            Self::None => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match self {
            Self::Text(value) => {
                let value: StringDeserializer<ValueError> = value.into_deserializer();
                value.deserialize_enum(name, variants, visitor)
            }
            value => value.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PassiveAggressiveOptions, Variant};
    use super::*;

    fn parse(parameters: &[(&str, Parameter)]) -> Result<PassiveAggressiveOptions> {
        parameters.iter().cloned().collect::<Parameters>().parse()
    }

    #[test]
    fn names_become_fields_and_the_rest_has_defaults() {
        let options = parse(&[
            ("C", Parameter::Int(2)),
            ("variant", Parameter::Text("PA-II".into())),
        ]);
        let expected = PassiveAggressiveOptions {
            C: 2.0,
            variant: Variant::PaII,
            ..PassiveAggressiveOptions::default()
        };
        assert_eq!(options.expect("valid"), expected);
    }

    #[test]
    fn errors_name_the_parameter() {
        let message = |parameters: &[_]| parse(parameters).expect_err("invalid").to_string();
        let text = Parameter::Text("x".into());
        assert_eq!(
            message(&[("C", text.clone())]),
            "C: invalid type: string \"x\", expected f64"
        );
        assert_eq!(
            message(&[("variant", text)]),
            "variant: unknown variant `x`, expected `PA-I` or `PA-II`"
        );
        let unknown = message(&[("alpha", Parameter::None)]);
        assert!(unknown.starts_with("unknown field `alpha`, expected one of `C`"));
    }
}
