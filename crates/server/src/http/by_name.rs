//! Objects of a request, whose fields have names.
//!
//! What serde derives for a struct takes an array as well, as the struct's fields in their
//! order. The API describes no such form: a field that is added later would change what an
//! array means, and an empty array would be an object whose fields are all left out. So
//! [`ByName`] reads a struct, and a variant with fields, from a map only, at every depth.
//! Arrays that are meant as arrays are read as before.
//!
//! A type that reads what it does not know yet (a tagged enum) could keep an array and make
//! a struct of it later, so in such a type no array is read at all.
//!
//! An error names the fields that lead to it.

use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

/// A deserializer, or what reads one, that takes fields by their names only.
pub(super) struct ByName<T>(pub(super) T);

/// What reads a map, and no array.
struct FromMap<V>(V);

/// A visitor, and whether there may be an array.
struct Reader<V> {
    visitor: V,
    arrays: bool,
}

/// A map, and the last key that was read.
struct Keyed<A> {
    map: A,
    key: String,
}

fn reader<V>(visitor: V) -> Reader<V> {
    Reader { visitor, arrays: true }
}

/// Methods of a deserializer that read something without parts.
macro_rules! plain {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(visitor)
        }
    )*};
}

/// Methods of a deserializer that read something with parts.
macro_rules! with_parts {
    ($($method:ident($($name:ident: $of:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $($name: $of,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* reader(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ByName<D> {
    type Error = D::Error;

    plain! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_identifier deserialize_ignored_any
    }

    with_parts! {
        deserialize_option()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Reader { visitor, arrays: false })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.deserialize_map(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Methods of a visitor that are given something without parts.
macro_rules! given {
    ($($method:ident($of:ty))*) => {$(
        fn $method<E: Error>(self, value: $of) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Reader<V> {
    type Value = V::Value;

    given! {
        visit_bool(bool) visit_i64(i64) visit_i128(i128) visit_u64(u64) visit_u128(u128)
        visit_f64(f64) visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(ByName(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        inner: D,
    ) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(ByName(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, all: A) -> Result<V::Value, A::Error> {
        match self.arrays {
            true => self.visitor.visit_seq(ByName(all)),
            false => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Keyed { map, key: String::new() })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, which: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(ByName(which))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for ByName<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(ByName(from))
    }
}

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for FromMap<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        from.deserialize_map(reader(self.0))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for ByName<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(ByName(seed))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Keyed<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let Some(key) = self.map.next_key::<String>()? else { return Ok(None) };
        self.key = key;
        let key: StrDeserializer<'_, A::Error> = self.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, A::Error> {
        let value = self.map.next_value_seed(ByName(seed));
        value.map_err(|error| A::Error::custom(format!("`{}`: {error}", self.key)))
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for ByName<A> {
    type Error = A::Error;
    type Variant = ByName<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(seed)?;
        Ok((value, ByName(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for ByName<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(ByName(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, reader(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(FromMap(visitor))
    }
}

/// Reads a JSON text.
pub(super) fn from_json<'de, T: Deserialize<'de>>(
    text: &'de [u8],
) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = T::deserialize(ByName(&mut json))?;
    json.end()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use sterna_api::{ChangeStorageDrs, CreatePolicy, PlanEvacuation, StartMigration};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    enum Plain {
        None,
        One(Pair),
        Both(u8, Pair),
        Named { pair: Pair },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind", content = "of")]
    enum Beside {
        Named { pair: Pair },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind")]
    enum Within {
        Named { pair: Pair },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: u8,
        #[serde(default)]
        b: Option<(u8, u8)>,
    }

    const PAIR: Pair = Pair { a: 1, b: Some((2, 3)) };

    fn refused<T: Debug + for<'de> Deserialize<'de>>(text: &str) -> String {
        from_json::<T>(text.as_bytes()).unwrap_err().to_string()
    }

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> T {
        from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn arrays_that_are_arrays_are_read() {
        assert_eq!(read::<Vec<Pair>>(r#"[{"a":1,"b":[2,3]}]"#), [PAIR]);
        assert_eq!(read::<Plain>(r#""None""#), Plain::None);
        assert_eq!(read::<Plain>(r#"{"One":{"a":1,"b":[2,3]}}"#), Plain::One(PAIR));
        assert_eq!(
            read::<Plain>(r#"{"Both":[4,{"a":1,"b":[2,3]}]}"#),
            Plain::Both(4, PAIR)
        );
        let named = r#"{"Named":{"pair":{"a":1,"b":[2,3]}}}"#;
        assert_eq!(read::<Plain>(named), Plain::Named { pair: PAIR });
        let named = r#"{"kind":"Named","of":{"pair":{"a":1,"b":[2,3]}}}"#;
        assert_eq!(read::<Beside>(named), Beside::Named { pair: PAIR });
        let named = r#"{"kind":"Named","pair":{"a":1}}"#;
        let pair = Pair { a: 1, b: None };
        assert_eq!(read::<Within>(named), Within::Named { pair });
    }

    #[test]
    fn no_struct_is_read_from_an_array_at_any_depth() {
        let array = "invalid type: sequence, expected ";
        for error in [
            refused::<Pair>("[1,[2,3]]"),
            refused::<Vec<Pair>>("[[1,[2,3]]]"),
            refused::<Plain>(r#"{"One":[1,[2,3]]}"#),
            refused::<Plain>(r#"{"Both":[4,[1,[2,3]]]}"#),
            refused::<Plain>(r#"{"Named":[{"a":1}]}"#),
            refused::<Plain>(r#"{"Named":{"pair":[1]}}"#),
            refused::<Beside>(r#"["Named",{"pair":{"a":1}}]"#),
            refused::<Beside>(r#"{"kind":"Named","of":[{"a":1}]}"#),
            refused::<Beside>(r#"{"of":[{"a":1}],"kind":"Named"}"#),
            refused::<Beside>(r#"{"of":{"pair":[1]},"kind":"Named"}"#),
            refused::<Within>(r#"["Named",{"a":1}]"#),
            refused::<Within>(r#"{"kind":"Named","pair":[1]}"#),
        ] {
            assert!(error.contains(array), "{error}");
        }
    }

    #[test]
    fn requests_are_refused_with_the_field_and_the_place() {
        let guard = r#"{"disk":"d","to":"b","guard":[0.5,5000,"8h"]}"#;
        let error = refused::<StartMigration>(guard);
        assert!(error.starts_with("`guard`: invalid type: sequence"), "{error}");
        assert!(error.contains("line 1 column"), "{error}");
        let error = refused::<ChangeStorageDrs>(r#"{"guard":[]}"#);
        assert!(error.starts_with("`guard`: "), "{error}");
        let aim = r#"{"class":"c","aim":["limit",{"iops":5}]}"#;
        let error = refused::<CreatePolicy>(aim);
        assert!(error.starts_with("`aim`: "), "{error}");
        let tiles = r#"{"datastore":"a","tiles":[["t",["d"]]]}"#;
        let error = refused::<PlanEvacuation>(tiles);
        assert!(error.starts_with("`tiles`: "), "{error}");
    }
}
