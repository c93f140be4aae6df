//! One row of the section: the content of a stream, over a transport.

use std::error::Error;

use tenon_bench::contestant::Contestant;
use tenon_bench_common::address::Transport;
use tenon_bench_common::transfer::Content;

use super::choice::Choice;
use super::contender::Contender;
use crate::report::{CodecStats, Measured, Ratio, Unit};

/// How many rounds each contestant measures, in turns; the first does not count.
const ROUNDS: usize = 8;

/// What is measured together.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub transport: Transport,
    pub content: Content,
}

impl Row {
    /// All there are.
    pub fn all() -> Vec<Row> {
        let transports = [Transport::Tcp, Transport::Unix, Transport::Shm];
        let of = |content| transports.map(|transport| Row { transport, content });
        Content::ALL.into_iter().flat_map(of).collect()
    }

    /// `tcp.bytes`, for instance.
    pub fn name(&self) -> String {
        format!("{}.{}", self.transport, self.content)
    }

    /// Lets all contestants that can take part have streams in turns.
    ///
    /// # Errors
    /// A contestant, which the error names, fails or gives a wrong answer.
    pub fn measure(&self, choice: &Choice) -> Result<Measured, Box<dyn Error>> {
        let all = choice.contenders.iter().copied();
        let (able, unable): (Vec<Contender>, Vec<Contender>) =
            all.partition(|one| one.left_out(self).is_none());
        let left_out = unable
            .into_iter()
            .filter_map(|one| Some((one.name(), one.left_out(self)?)));
        Ok(Measured {
            name: self.name(),
            table: self.table().to_owned(),
            row: self.name(),
            unit: self.unit(),
            figures: self.take_turns(&able, choice.megabytes)?,
            further: vec![Ratio::of("tenon_tokio", "raw")],
            left_out: left_out.collect(),
        })
    }

    fn take_turns(
        &self,
        contenders: &[Contender],
        megabytes: u64,
    ) -> Result<Vec<CodecStats>, Box<dyn Error>> {
        let mut contestants = Vec::new();
        for contender in contenders {
            let started = Contestant::start(&contender.plan(self), Ok);
            contestants.push(started.map_err(|error| format!("{}: {error}", contender.name()))?);
        }
        let stats = |contender: &Contender| CodecStats::new(contender.name());
        let mut figures: Vec<CodecStats> = contenders.iter().map(stats).collect();
        for round in 0..ROUNDS {
            for (contestant, figures) in contestants.iter_mut().zip(&mut figures) {
                let measured = contestant.transfer(self.amount(megabytes));
                let measured = measured.map_err(|error| format!("{}: {error}", figures.name))?;
                // The first warms up.
                if round > 0 {
                    figures.rounds.push(measured);
                }
            }
        }
        Ok(figures)
    }

    /// Bytes or items of a stream.
    fn amount(&self, megabytes: u64) -> u64 {
        match self.unit() {
            Unit::Items => megabytes * 1000,
            Unit::Bytes | Unit::Rate | Unit::Time => megabytes * 1_000_000,
        }
    }

    fn unit(&self) -> Unit {
        match self.content {
            Content::Bytes | Content::ArgumentBytes => Unit::Bytes,
            Content::Items => Unit::Items,
        }
    }

    /// The table that it belongs to.
    fn table(&self) -> &'static str {
        match self.unit() {
            Unit::Items => "items",
            Unit::Bytes | Unit::Rate | Unit::Time => "bytes",
        }
    }
}
