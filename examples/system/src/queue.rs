//! The queue behind `jobs-server`, with the leases of workers; [`Jobs`](crate::job_service::Jobs) adds long polling.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::jobs::{Event, Job, JobEvent, JobStatus};
use crate::journal::{Journal, JournalError};

/// Jobs in the order in which they came, with their submissions and results in a journal.
///
/// Leases are not in the journal: after a restart every job that is not finished is given out again.
pub struct Queue {
    jobs: HashMap<u64, JobRecord>,
    waiting: VecDeque<u64>,
    /// The ends of leases, earliest first. An entry is void unless its job has the same end.
    leases: VecDeque<(Instant, u64)>,
    lease: Duration,
    last: u64,
    journal: Journal,
}

struct JobRecord {
    work: Vec<u8>,
    progress: Progress,
}

enum Progress {
    Waiting,
    Running { until: Instant },
    Finished { result: Vec<u8> },
}

impl Queue {
    /// Opens the queue whose journal is at `path`. A worker keeps a job for the time `lease`; with `sync` every
    /// change waits for the disk.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(path: &Path, lease: Duration, sync: bool) -> Result<Self, JournalError> {
        let mut jobs = HashMap::new();
        let mut last = 0;
        let journal = Journal::open(path, sync, |event: JobEvent| {
            last = last.max(event.id);
            apply(&mut jobs, event);
        })?;
        let is_open = |record: &JobRecord| matches!(record.progress, Progress::Waiting);
        let open = jobs.iter().filter(|(_, record)| is_open(record));
        let mut waiting: Vec<u64> = open.map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        Ok(Self {
            jobs,
            waiting: waiting.into(),
            leases: VecDeque::new(),
            lease,
            last,
            journal,
        })
    }

    /// Adds a job.
    ///
    /// # Errors
    /// [`JournalError`]. The job is not in the queue then.
    pub fn submit(&mut self, work: Vec<u8>) -> Result<u64, JournalError> {
        let id = self.last + 1;
        self.append(JobEvent {
            id,
            event: Event::Submitted,
            bytes: work,
        })?;
        self.last = id;
        self.waiting.push_back(id);
        Ok(id)
    }

    /// Gives the next job to a worker, if there is one.
    pub fn take(&mut self, now: Instant) -> Option<Job> {
        self.end_leases(now);
        while let Some(id) = self.waiting.pop_front() {
            // One may have been finished by a worker whose lease was over.
            if let Some(record) = self.jobs.get_mut(&id)
                && matches!(record.progress, Progress::Waiting)
            {
                let until = now + self.lease;
                record.progress = Progress::Running { until };
                self.leases.push_back((until, id));
                let work = record.work.clone();
                return Some(Job { id, work });
            }
        }
        None
    }

    /// Finishes a job; returns false if it is unknown or finished.
    ///
    /// # Errors
    /// [`JournalError`]. The job is not finished then.
    pub fn finish(&mut self, id: u64, result: Vec<u8>) -> Result<bool, JournalError> {
        let record = self.jobs.get(&id);
        if record.is_none_or(|record| matches!(record.progress, Progress::Finished { .. })) {
            return Ok(false);
        }
        self.append(JobEvent {
            id,
            event: Event::Completed,
            bytes: result,
        })?;
        Ok(true)
    }

    /// Returns how a job is getting on.
    pub fn status(&self, id: u64) -> JobStatus {
        match self.jobs.get(&id).map(|record| &record.progress) {
            None => JobStatus::Unknown,
            Some(Progress::Waiting) => JobStatus::Waiting,
            Some(Progress::Running { .. }) => JobStatus::Running,
            Some(Progress::Finished { result }) => JobStatus::Finished(result.clone()),
        }
    }

    /// Returns the end of the lease that ends first.
    pub fn next_lease_end(&self) -> Option<Instant> {
        self.leases.front().map(|(until, _)| *until)
    }

    fn end_leases(&mut self, now: Instant) {
        while let Some((until, id)) = self.leases.front().copied()
            && until <= now
        {
            self.leases.pop_front();
            if let Some(record) = self.jobs.get_mut(&id)
                && matches!(record.progress, Progress::Running { until: end } if end == until)
            {
                record.progress = Progress::Waiting;
                self.waiting.push_back(id);
            }
        }
    }

    fn append(&mut self, event: JobEvent) -> Result<(), JournalError> {
        self.journal.append(&event)?;
        apply(&mut self.jobs, event);
        Ok(())
    }
}

fn apply(jobs: &mut HashMap<u64, JobRecord>, event: JobEvent) {
    let JobEvent { id, event, bytes } = event;
    match event {
        Event::Submitted => {
            let record = JobRecord {
                work: bytes,
                progress: Progress::Waiting,
            };
            jobs.insert(id, record);
        }
        Event::Completed => {
            if let Some(record) = jobs.get_mut(&id) {
                record.work = Vec::new();
                record.progress = Progress::Finished { result: bytes };
            }
        }
    }
}
