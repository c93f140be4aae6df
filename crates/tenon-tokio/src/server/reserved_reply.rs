//! Results that handlers of tasks write where they are sent from.

use std::fmt;
use std::ops::{Deref, DerefMut};

use tenon::wire::{Blittable, Buffer, Lean, ReservedValue, Xdr};
use tenon::{Protocol, Refusal};
use tenon_proto::connection::ReplyDraft;

use super::request::{Request, RequestCodec, RequestedProcedure};
use super::{Answer, Call};

/// Room for the result of a call, all of it zero at first, which belongs to the future that carries the call out. It lies
/// in the reply if the result lies on the wire as in memory, and in a buffer of its own otherwise. Only
/// [`Call::respond_reserved`] makes a reply of it: if this is dropped before, it is freed.
pub struct ReservedReply<P: RequestedProcedure> {
    result: ReservedValue<P::Result>,
    /// What begins the reply, if the result lies in it.
    draft: Option<ReplyDraft>,
}

impl<P> Deref for ReservedReply<P>
where
    P: RequestedProcedure<Result: Blittable>,
{
    type Target = P::Result;

    #[inline]
    fn deref(&self) -> &P::Result {
        &self.result
    }
}

impl<P> DerefMut for ReservedReply<P>
where
    P: RequestedProcedure<Result: Blittable>,
{
    #[inline]
    fn deref_mut(&mut self) -> &mut P::Result {
        &mut self.result
    }
}

impl<P> fmt::Debug for ReservedReply<P>
where
    P: RequestedProcedure<Result: Blittable + fmt::Debug>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReservedReply").field(&**self).finish()
    }
}

impl Call {
    /// Makes room for the result of the call, by whichever protocol it came: in the reply, if the result lies there as in
    /// memory.
    pub fn reserve<P>(&self) -> ReservedReply<P>
    where
        P: Request<Result: Blittable>,
    {
        let is_blitted = match self.protocol() {
            Protocol::Onc => <P as RequestCodec<Xdr>>::RESULT_IS_BLITTED,
            Protocol::Lean => <P as RequestCodec<Lean>>::RESULT_IS_BLITTED,
        };
        let (buffer, draft) = if is_blitted {
            let (reply, draft) = self.begin_reply();
            (reply, Some(draft))
        } else {
            // The thread's spare buffer is for the reply.
            (Buffer::default(), None)
        };
        let result = ReservedValue::new(buffer);
        ReservedReply { result, draft }
    }

    /// Answers with the result that a handler wrote where there was [room](Self::reserve) for it, or with its refusal; then
    /// nothing of the result is in the answer.
    ///
    /// # Errors
    /// None: the type is that of [`AsyncService::call`](super::AsyncService::call).
    pub fn respond_reserved<P>(
        self,
        reply: ReservedReply<P>,
        outcome: Result<(), Refusal>,
    ) -> Result<Answer, Refusal>
    where
        P: Request<Result: Blittable>,
    {
        let ReservedReply { result, draft } = reply;
        match (outcome, draft, self.protocol()) {
            (Err(refusal), ..) => Ok(self.refuse(refusal)),
            (Ok(()), Some(draft), Protocol::Onc) => Ok(self.seal(draft, result.finish::<Xdr>())),
            (Ok(()), Some(draft), Protocol::Lean) => Ok(self.seal(draft, result.finish::<Lean>())),
            (Ok(()), None, Protocol::Onc) => {
                self.answer(|out| <P as RequestCodec<Xdr>>::encode(&result, out))
            }
            (Ok(()), None, Protocol::Lean) => {
                self.answer_lean(|out| <P as RequestCodec<Lean>>::encode(&result, out))
            }
        }
    }
}
