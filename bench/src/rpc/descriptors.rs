//! Room for the descriptors of many connections: contestants have the limit of this process.

use std::error::Error;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::row::Row;

/// Raises the limit as far as the rows need.
///
/// # Errors
/// The system allows fewer.
pub fn provide(rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let needed = rows.iter().map(|row| row.mode.descriptors()).max();
    let needed = u64::try_from(needed.unwrap_or_default())?;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(maximum) = maximum
        && maximum < needed
    {
        let said = format!("a process may have {maximum} descriptors, and {needed} are needed");
        return Err(format!("{said}: raise the hard limit (ulimit -Hn)").into());
    }
    let current = Some(needed);
    setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    Ok(())
}
