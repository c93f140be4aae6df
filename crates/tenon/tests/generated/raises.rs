//! Errors of procedures whose handlers are lent what they read, and of those that only ONC RPC carries.

use crate::common::caller::listening;
use crate::raises_onc::{
    JobsV1, JobsV1Calls, JobsV1Client, JobsV1InProcess, JobsV1JobsStateError, JobsV1Service,
    NoSuchJob,
};
use crate::raises_views::trouble::Lost;
use crate::raises_views::{
    File, FileView, FilesV1, FilesV1Calls, FilesV1Client, FilesV1ForgetError, FilesV1InProcess,
    FilesV1PutError, FilesV1Service,
};
use tenon::{CallError, CallErrorKind, CallInfo, Refusal, Refused};

struct Drawer;

impl FilesV1 for Drawer {
    fn put(&self, _: &CallInfo<'_>, file: FileView<'_>) -> Result<i32, FilesV1PutError<Refusal>> {
        if file.data.is_empty() {
            let what = file.name.into();
            return Err(Lost { what }.into());
        }
        Ok(file.data.len() as i32)
    }

    fn forget(&self, _: &CallInfo<'_>, number: i32) -> Result<(), FilesV1ForgetError<Refusal>> {
        let what = number.to_string().into();
        Err(Lost { what })?
    }
}

fn check(files: &dyn FilesV1Calls) {
    let mut file = File {
        name: "letter".into(),
        data: vec![1, 2, 3],
    };
    assert_eq!(files.put(&file).unwrap(), 3);
    file.data.clear();
    let FilesV1PutError::Lost(lost) = files.put(&file).unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(lost.what, "letter");
    let error = files.forget(7).unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Raised);
    assert_eq!(
        error.to_string(),
        r#"the procedure raised Lost { what: "7" }"#
    );
}

#[test]
fn handlers_raise_errors_of_what_they_are_lent() {
    check(&FilesV1InProcess(Drawer));
    let server = listening().service(FilesV1Service(Drawer)).start().unwrap();
    let address = format!("lean+{}", server.addresses()[0]);
    check(&FilesV1Client::connect(&address).unwrap());
}

struct Queue;

impl JobsV1 for Queue {
    fn jobs_state(
        &self,
        _: &CallInfo<'_>,
        number: i32,
    ) -> Result<i32, JobsV1JobsStateError<Refusal>> {
        match number {
            0.. => Ok(number),
            _ => Err(NoSuchJob { number }.into()),
        }
    }
}

/// In the process it is as over a connection: the error itself does not arrive.
fn check_onc(jobs: &dyn JobsV1Calls) {
    assert_eq!(jobs.jobs_state(7).unwrap(), 7);
    match jobs.jobs_state(-1).unwrap_err() {
        JobsV1JobsStateError::Other(CallError::Refused(Refused::SystemError)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn by_onc_rpc_alone_an_error_is_a_failure() {
    check_onc(&JobsV1InProcess(Queue));
    let server = listening().service(JobsV1Service(Queue)).start().unwrap();
    let address = server.addresses()[0].to_string();
    check_onc(&JobsV1Client::connect(&address).unwrap());
}
