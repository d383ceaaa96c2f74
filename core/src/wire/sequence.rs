use bson::RawDocument;
use smallvec::SmallVec;

use super::WireError;
use super::reader::Reader;
use crate::one_line::OneLine;

pub(super) const BODY: u8 = 0;
pub(super) const SEQUENCE: u8 = 1;

/// A section of kind 1: documents that belong into the command's field of that name, side by side
/// instead of within it.
#[derive(Clone, Debug)]
pub struct DocumentSequence<'a> {
    identifier: &'a str,
    documents: Reader<'a>,
}

/// The document sequences of a message, in its order.
#[derive(Clone, Debug)]
pub struct Sequences<'a> {
    sections: Reader<'a>,
}

/// The documents of a sequence, in its order, each found when it is asked for.
#[derive(Clone, Debug)]
pub struct Documents<'a> {
    documents: Reader<'a>,
}

impl<'a> DocumentSequence<'a> {
    /// The field that the documents belong to: `documents`, `updates` or `deletes`.
    #[must_use]
    pub fn identifier(&self) -> &'a str {
        self.identifier
    }

    /// Its documents. They were checked with the message; nothing is copied.
    #[must_use]
    pub fn documents(&self) -> Documents<'a> {
        Documents { documents: self.documents.clone() }
    }

    fn read(sections: &mut Reader<'a>) -> Result<Self, WireError> {
        const LEAST: usize = 5;
        let (offset, room) = (sections.offset(), sections.left());
        let got = sections.clone().i32("section size")?;
        let size = usize::try_from(got).ok().filter(|size| (LEAST..=room).contains(size));
        let size = size.ok_or(WireError::SectionSize { got, offset, room })?;
        let mut section = sections.split(size, "section")?;
        section.i32("section size")?;
        let identifier = section.name("sequence identifier")?;
        Ok(Self { identifier, documents: section })
    }
}

/// Checks all sections, and finds the one body.
// MS-04
pub(super) fn check_sections<'a>(mut sections: Reader<'a>) -> Result<&'a RawDocument, WireError> {
    let mut body = None;
    let mut names = Names { all: sections.clone(), offsets: SmallVec::new() };
    while sections.left() > 0 {
        let offset = sections.offset();
        match sections.u8("section kind")? {
            BODY if body.is_some() => return Err(WireError::SecondBody { offset }),
            BODY => body = Some(sections.document()?),
            SEQUENCE => {
                names.offsets.push(u32::try_from(offset).expect("a message is below 2 GiB"));
                let mut documents = DocumentSequence::read(&mut sections)?.documents;
                while documents.left() > 0 {
                    documents.document()?;
                }
            }
            kind => return Err(WireError::UnknownSectionKind { kind, offset }),
        }
    }
    names.check()?;
    body.ok_or(WireError::NoBody)
}

/// The body of sections that [`check_sections`] has accepted.
pub(super) fn body_of_checked<'a>(sections: &mut Reader<'a>) -> &'a RawDocument {
    while sections.u8("section kind").expect("the sections were checked") == SEQUENCE {
        DocumentSequence::read(sections).expect("the sections were checked");
    }
    sections.checked_document().expect("the sections were checked")
}

/// Where each sequence begins: fewer bytes than the sequence itself, however many there are, and
/// sorting keeps the check far from quadratic.
struct Names<'a> {
    all: Reader<'a>,
    offsets: SmallVec<[u32; 4]>,
}

impl<'a> Names<'a> {
    fn check(mut self) -> Result<(), WireError> {
        let mut offsets = core::mem::take(&mut self.offsets);
        offsets.sort_unstable_by_key(|offset| self.name(*offset));
        for pair in offsets.windows(2) {
            let identifier = self.name(pair[1]);
            if self.name(pair[0]) == identifier {
                return Err(WireError::DuplicateSequence {
                    identifier: OneLine::name(identifier).to_string(),
                });
            }
        }
        Ok(())
    }

    fn name(&self, offset: u32) -> &'a str {
        let mut section = self.all.back_to(offset as usize + 1);
        DocumentSequence::read(&mut section).expect("the section was read before").identifier
    }
}

impl<'a> Sequences<'a> {
    /// Over sections that [`check_sections`] has accepted.
    pub(super) fn of_checked(sections: Reader<'a>) -> Self {
        Self { sections }
    }
}

impl<'a> Documents<'a> {
    /// Over documents that were checked.
    pub(super) fn of_checked(documents: Reader<'a>) -> Self {
        Self { documents }
    }
}

impl<'a> Iterator for Sequences<'a> {
    type Item = DocumentSequence<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.sections.left() > 0 {
            if self.sections.u8("section kind").expect("a byte is left") == SEQUENCE {
                let sequence = DocumentSequence::read(&mut self.sections);
                return Some(sequence.expect("the sections were checked"));
            }
            self.sections.checked_document();
        }
        None
    }
}

impl<'a> Iterator for Documents<'a> {
    type Item = &'a RawDocument;

    fn next(&mut self) -> Option<Self::Item> {
        self.documents.checked_document()
    }
}
