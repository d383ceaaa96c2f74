//! Values for serde, but for one thing: what has keys has to be written with keys.
//!
//! To serde, a list of values is as good as the struct that has these fields in this order, so that
//! a list could pass for an object, and the file for a test.

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value, map};

/// A value whose structs are objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strict<'v>(pub(super) &'v Value);

/// What stands in the place of an object.
fn no_object<E>(value: &Value) -> Result<E, Error> {
    let unexpected = match value {
        Value::Null => Unexpected::Other("null"),
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("a number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    };
    Err(Error::invalid_type(unexpected, &"a map"))
}

impl<'de> Deserializer<'de> for Strict<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut rest = Items(items.iter());
                let read = visitor.visit_seq(&mut rest)?;
                // Elements that were not read must not be ignored.
                match rest.0.len() {
                    0 => Ok(read),
                    _ => Err(Error::invalid_length(items.len(), &"fewer elements")),
                }
            }
            Value::Object(object) => {
                let mut rest = Entries { rest: object.iter(), value: None };
                let read = visitor.visit_map(&mut rest)?;
                match rest.rest.len() {
                    0 => Ok(read),
                    _ => Err(Error::invalid_length(object.len(), &"fewer keys")),
                }
            }
            // The rest holds nothing that could have fields.
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                plain.deserialize_any(visitor)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    // A key without anything behind it is no empty map.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_object() { self.deserialize_any(visitor) } else { no_object(self.0) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_object() { self.deserialize_any(visitor) } else { no_object(self.0) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(object) => match object.iter().next() {
                Some((name, value)) if object.len() == 1 => {
                    visitor.visit_enum(Variant { name, value })
                }
                Some(_) | None => {
                    Err(Error::invalid_value(Unexpected::Map, &"map with a single key"))
                }
            },
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)) => other.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

struct Items<'v>(std::slice::Iter<'v, Value>);

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.next().map(|item| seed.deserialize(Strict(item))).transpose()
    }
}

struct Entries<'v> {
    rest: map::Iter<'v>,
    /// Of the key that was read last.
    value: Option<&'v Value>,
}

impl<'de> MapAccess<'de> for &mut Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(named(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Strict(self.value.take().unwrap_or(&Value::Null)))
    }
}

struct Variant<'v> {
    name: &'v str,
    value: &'v Value,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Strict<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Strict<'de>), Error> {
        Ok((seed.deserialize(named(self.name))?, Strict(self.value)))
    }
}

impl<'de> VariantAccess<'de> for Strict<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}

fn named(name: &str) -> StrDeserializer<'_, Error> {
    name.into_deserializer()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Map, Value, json};

    use super::Strict;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Point {
        x: u8,
        y: Option<f64>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    enum Shape {
        Nothing,
        Dot(Point),
        Line { from: Point, to: Point },
        Count(u8),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Picture {
        shapes: Vec<Shape>,
        names: BTreeMap<String, Value>,
        #[serde(default)]
        more: Map<String, Value>,
        pair: Option<(u8, bool)>,
    }

    fn read(value: &Value) -> Result<Picture, String> {
        Picture::deserialize(Strict(value)).map_err(|error| error.to_string())
    }

    #[test]
    fn it_reads_what_serde_reads() {
        let picture = json!({
            "shapes": [
                "nothing", { "dot": { "x": 1, "y": null } }, { "count": 3 },
                { "line": { "from": { "x": 1, "y": 2.5 }, "to": { "x": 2 } } },
            ],
            "names": { "a": [1, { "b": null }, -1, 1.5, true, "c"] },
            "more": { "b": {} },
            "pair": [1, true],
        });
        let expected = serde_json::from_value(picture.clone()).unwrap();
        assert_eq!(read(&picture), Ok(expected));
    }

    #[test]
    fn a_list_is_no_struct() {
        let of = |shape: Value| json!({ "shapes": [shape], "names": {} });
        for (value, complaint) in [
            (json!([[], {}]), "invalid type: sequence, expected a map"),
            (json!("picture"), "invalid type: string \"picture\", expected a map"),
            (json!(7), "invalid type: a number, expected a map"),
            (Value::Null, "invalid type: null, expected a map"),
            (of(json!({ "dot": [1, 2.5] })), "invalid type: sequence, expected a map"),
            (of(json!({ "line": [{ "x": 1 }, { "x": 2 }] })), "invalid type: sequence, expected"),
            (of(json!({ "line": { "from": [1], "to": { "x": 2 } } })), "invalid type: sequence"),
            (of(json!({ "dot": { "x": 1 }, "count": 3 })), "expected map with a single key"),
            (of(json!({})), "expected map with a single key"),
            (of(json!(3)), "invalid type"),
            (of(json!({ "nothing": 3 })), "invalid type"),
            (of(json!({ "circle": 3 })), "unknown variant `circle`"),
            (of(json!({ "count": 300 })), "invalid value: integer `300`"),
            (json!({ "more": null }), "invalid type: null, expected a map"),
            (json!({ "pair": [1, true, 2] }), "invalid length 3, expected fewer elements"),
            (json!({ "pair": [1] }), "invalid length 1"),
            (json!({ "shapes": [] }), "missing field `names`"),
        ] {
            let said = read(&value).unwrap_err();
            assert!(said.contains(complaint), "{value}: no {complaint:?} in {said}");
        }
    }
}
