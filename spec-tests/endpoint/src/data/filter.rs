//! Which documents are asked for.

use std::cmp::Ordering;

use bson::{RawBson, RawBsonRef, RawDocument};

use super::value;
use crate::refusal::{Refusal, code};
use crate::request::first_key;
use crate::slow;

/// Tests of top-level fields, all of which must hold: equality, and `$eq $ne $in $gt $gte $lt
/// $lte`.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Filter {
    tests: Vec<(String, Test)>,
    /// The key of the `_id` that is asked for.
    id: Option<Vec<u8>>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Test {
    /// One of these keys; `null` stands for a field that is missing.
    Any(Vec<Vec<u8>>),
    None(Vec<u8>),
    Range(Bound, RawBson),
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    Below,
    UpTo,
    From,
    Above,
}

impl Filter {
    /// # Errors
    ///
    /// A filter that this server cannot do: it would give other documents than were asked for.
    pub(in super::super) fn read(filter: &RawDocument) -> Result<Self, Refusal> {
        let mut read = Self { bytes: filter.as_bytes().len(), ..Self::default() };
        for element in filter {
            let (name, value) = element?;
            match name.as_str() {
                "$comment" => {}
                "$where" if slow::is_known(value) => {}
                name if name.starts_with('$') || name.contains('.') => {
                    return Err(Refusal::cannot(&format!("'{name}' in a filter")));
                }
                name => read.add(name, value)?,
            }
        }
        Ok(read)
    }

    /// The key of the only `_id` that fits.
    pub(super) fn id(&self) -> Option<&[u8]> {
        self.id.as_deref()
    }

    pub(super) fn bytes(&self) -> usize {
        2 * self.bytes
    }

    /// Another filter that must hold as well.
    pub(in super::super) fn and(mut self, other: Self) -> Self {
        self.tests.extend(other.tests);
        self.id = self.id.or(other.id);
        self.bytes += other.bytes;
        self
    }

    pub(in super::super) fn matches(&self, document: &RawDocument) -> bool {
        self.tests.iter().all(|(name, test)| {
            let value = document.get(name).ok().flatten().unwrap_or(RawBsonRef::Null);
            test.holds(value)
        })
    }

    fn add(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<(), Refusal> {
        let operators = value.as_document().filter(|it| first_key(it).starts_with('$'));
        let Some(operators) = operators else {
            let key = value::key(value);
            if name == "_id" {
                self.id.get_or_insert_with(|| key.clone());
            }
            self.tests.push((name.to_owned(), Test::Any(vec![key])));
            return Ok(());
        };
        for operator in operators {
            let (operator, value) = operator?;
            self.tests.push((name.to_owned(), Test::read(operator.as_str(), value)?));
        }
        Ok(())
    }
}

impl Test {
    fn read(operator: &str, value: RawBsonRef<'_>) -> Result<Self, Refusal> {
        Ok(match operator {
            "$eq" => Self::Any(vec![value::key(value)]),
            "$ne" => Self::None(value::key(value)),
            "$in" => {
                let Some(values) = value.as_array() else {
                    return Err(Refusal::new(code::BAD_VALUE, "$in needs an array"));
                };
                Self::Any(values.into_iter().flatten().map(value::key).collect())
            }
            "$lt" => Self::Range(Bound::Below, value.into()),
            "$lte" => Self::Range(Bound::UpTo, value.into()),
            "$gte" => Self::Range(Bound::From, value.into()),
            "$gt" => Self::Range(Bound::Above, value.into()),
            operator => {
                let message = format!("unknown operator: {operator}");
                return Err(Refusal::new(code::BAD_VALUE, message));
            }
        })
    }

    /// Of an array one of its values is enough.
    fn holds(&self, value: RawBsonRef<'_>) -> bool {
        let within = || value.as_array().into_iter().flatten().flatten();
        match self {
            Self::Any(keys) => {
                let is_one = |value| keys.contains(&value::key(value));
                is_one(value) || within().any(is_one)
            }
            Self::None(key) => {
                let is_it = |value| value::key(value) == *key;
                !(is_it(value) || within().any(is_it))
            }
            Self::Range(bound, limit) => {
                let fits = |value| {
                    let order = value::compare(value, limit.as_raw_bson_ref());
                    order.is_some_and(|order| bound.holds(order))
                };
                fits(value) || within().any(fits)
            }
        }
    }
}

impl Bound {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Below => order.is_lt(),
            Self::UpTo => order.is_le(),
            Self::From => order.is_ge(),
            Self::Above => order.is_gt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, rawdoc};

    use super::Filter;

    fn matches(filter: &RawDocumentBuf, document: &RawDocumentBuf) -> bool {
        Filter::read(filter).unwrap().matches(document)
    }

    #[test]
    fn fields_are_compared_as_servers_do() {
        assert!(matches(&rawdoc! {}, &rawdoc! { "a": 1 }));
        assert!(matches(&rawdoc! { "a": 1 }, &rawdoc! { "a": 1.0 }));
        assert!(!matches(&rawdoc! { "a": 1, "b": 2 }, &rawdoc! { "a": 1, "b": 3 }));
        assert!(matches(&rawdoc! { "a": 2 }, &rawdoc! { "a": [1, 2] }));
        assert!(matches(&rawdoc! { "a": null }, &rawdoc! { "b": 1 }));
        assert!(!matches(&rawdoc! { "a": { "$ne": 2 } }, &rawdoc! { "a": [1, 2] }));
        assert!(matches(&rawdoc! { "a": { "$in": [1, 5] } }, &rawdoc! { "a": 5 }));
        assert!(matches(&rawdoc! { "a": { "$gt": 1, "$lte": 2 } }, &rawdoc! { "a": 2 }));
        assert!(!matches(&rawdoc! { "a": { "$gte": 1 } }, &rawdoc! { "a": "x" }));
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        for filter in
            [rawdoc! { "$or": [] }, rawdoc! { "a.b": 1 }, rawdoc! { "a": { "$regex": "x" } }]
        {
            assert!(Filter::read(&filter).is_err(), "{filter:?}");
        }
    }
}
