//! The service that tells of interfaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon::{CallInfo, Refusal};
use tenon_descriptor::{Descriptor, DescriptorIdentity};

use crate::generated::{
    DescriptorPiece, DescriptorRange, NoSuchDescriptor, REFLECTION_PAGE_MAX, REFLECTION_PIECE_MAX,
    ReflectionPage, ReflectionRange, ReflectionV1, ReflectionV1ReadError,
};
use crate::{DescribeError, ReflectedVersion, generated};

/// The descriptors of a server, and the versions that they have.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReflectedDescriptors {
    versions: Vec<ReflectedVersion>,
    bytes: BTreeMap<DescriptorIdentity, Vec<u8>>,
}

impl ReflectedDescriptors {
    pub(crate) fn versions(&self) -> &[ReflectedVersion] {
        &self.versions
    }

    pub(crate) fn add(&mut self, descriptor: &Descriptor) -> Result<(), DescribeError> {
        let identity = descriptor.identity();
        if self.bytes.contains_key(&identity) {
            return Ok(());
        }
        for program in &descriptor.schema().programs {
            for version in &program.versions {
                let numbers = (program.number, version.number);
                let place = self
                    .versions
                    .binary_search_by_key(&numbers, |it| (it.program, it.version));
                let Err(place) = place else {
                    let (program, version) = numbers;
                    return Err(DescribeError::Twice { program, version });
                };
                let listed = ReflectedVersion {
                    program: program.number,
                    version: version.number,
                    program_name: program.name.clone(),
                    version_name: version.name.clone(),
                    identity,
                };
                self.versions.insert(place, listed);
            }
        }
        self.bytes.insert(identity, descriptor.bytes().to_vec());
        Ok(())
    }
}

pub(crate) struct ReflectionHandlers(pub(crate) Arc<ReflectedDescriptors>);

impl ReflectionV1 for ReflectionHandlers {
    fn list(
        &self,
        _call: &CallInfo<'_>,
        range: ReflectionRange,
    ) -> Result<ReflectionPage, Refusal> {
        let versions = part(
            &self.0.versions,
            range.first,
            range.count,
            REFLECTION_PAGE_MAX,
        );
        let versions = versions.iter().map(|it| generated::ReflectedVersion {
            program: it.program,
            version: it.version,
            program_name: it.program_name.as_str().into(),
            version_name: it.version_name.as_str().into(),
            descriptor: it.identity.0,
        });
        Ok(ReflectionPage {
            total: self.0.versions.len() as u32,
            versions: versions.collect(),
        })
    }

    fn read(
        &self,
        _call: &CallInfo<'_>,
        range: DescriptorRange,
    ) -> Result<DescriptorPiece, ReflectionV1ReadError<Refusal>> {
        let identity = DescriptorIdentity(range.descriptor);
        let bytes = self.0.bytes.get(&identity).ok_or(NoSuchDescriptor {
            descriptor: range.descriptor,
        })?;
        let piece = part(bytes, range.offset, range.count, REFLECTION_PIECE_MAX);
        Ok(DescriptorPiece {
            total: bytes.len() as u32,
            bytes: piece.to_vec(),
        })
    }
}

/// Returns at most `count` of all behind the `first`, and no more than `most`.
fn part<T>(all: &[T], first: u32, count: u32, most: u32) -> &[T] {
    let rest = all.get(first as usize..).unwrap_or_default();
    &rest[..rest.len().min(count.clamp(1, most) as usize)]
}
