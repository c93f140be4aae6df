//! The functions of one type: the part common to encoding, decoding and freeing.

use std::cell::Cell;

use tenon_plan::{Arm, Body, Op, Plan};
use tenon_schema::written::Spelling;
use tenon_schema::{Field, TypeId};

use super::emit::refuse_if;
use super::forms::{RoutineForm, RoutineForms};
use super::free::HeapOwnership;
use super::generic::RoutineCalls;
use super::pieces::moves;
use crate::c::spot::{CLvalue, UnionDefinition, link};
use crate::c::{Interface, planned};
use crate::writer::SourceWriter;

/// Writes the functions of one type.
pub struct RoutineWriter<'a> {
    pub of: Interface<'a>,
    pub owners: &'a HeapOwnership,
    pub forms: &'a RoutineForms,
    pub generic: RoutineCalls<'a>,
    /// The type.
    pub subject: RoutineSignature<'a>,
    /// Set if a message may have any number of values of the type.
    repeated: bool,
    /// Bytes behind the position that are known to be at hand.
    pub at_hand: Cell<u32>,
    /// The number of open loops.
    loops: Cell<u32>,
}

/// The signature of the functions of a type.
#[derive(Debug, Clone)]
pub struct RoutineSignature<'a> {
    /// Its name.
    pub name: &'a str,
    /// The parameter of its routine behind the stream: `node *objp`.
    pub parameter: String,
    /// C's type of the target of the value, which is a pointer.
    pub pointed: String,
}

/// The arm that a discriminant selects.
#[derive(Debug, Clone, Copy)]
pub enum SelectedArm {
    /// An arm, by its position.
    Arm(usize),
    /// The default arm.
    Default,
}

impl SelectedArm {
    /// The body of the selected arm.
    pub fn body<'a>(self, arms: &'a [Arm], default: &'a Option<Body>) -> &'a [Op] {
        match self {
            Self::Arm(index) => &arms[index].body,
            Self::Default => default.as_deref().unwrap_or_default(),
        }
    }
}

impl<'a> RoutineWriter<'a> {
    pub fn new(
        generic: RoutineCalls<'a>,
        (owners, forms): (&'a HeapOwnership, &'a RoutineForms),
        subject: RoutineSignature<'a>,
    ) -> Self {
        Self {
            of: generic.of,
            owners,
            forms,
            generic,
            subject,
            repeated: false,
            at_hand: Cell::new(0),
            loops: Cell::new(0),
        }
    }

    /// The same of a type of which a message may have any number.
    pub fn repeated(self, repeated: bool) -> Self {
        Self { repeated, ..self }
    }

    /// Returns whether the code that moves strings is inlined: where there may be many of them.
    pub fn copies_strings(&self) -> bool {
        self.repeated || self.loops.get() > 0
    }

    /// Writes the functions of a type, and its routine, which calls them.
    pub fn write(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, plan: &'a Plan) {
        self.write_functions(w, spot, plan);
        self.write_routine(w, "", self.owners.owns_body(&plan.body));
    }

    /// Writes the functions of a type alone.
    pub fn write_functions(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, plan: &'a Plan) {
        let owns = self.owners.owns_body(&plan.body);
        self.write_parts(w, spot, plan, owns);
    }

    fn write_parts(&self, w: &mut SourceWriter, spot: &CLvalue<'a>, plan: &'a Plan, owns: bool) {
        let (body, name) = (&plan.body, self.subject.name);
        self.function(w, "encode", body, |w| self.encode(w, spot, body));
        if plan.recursive {
            w.line("");
            self.announce(w, "decode");
            self.function(w, "decode_inside", body, |w| {
                self.decode(w, spot, body);
            });
            self.write_counting_decoder(w);
        } else {
            self.function(w, "decode", body, |w| self.decode(w, spot, body));
        }
        if owns {
            w.line("");
            w.line("static void");
            w.line(format!("tenon_free_{name} (XDR *xdrs, void *_value)"));
            w.braces_below(|w| {
                self.take_value(w);
                if !self.passes_stream(body) {
                    w.line("(void) xdrs;");
                }
                self.free(w, spot, body, false);
            });
        }
    }

    /// Names the value by its type.
    fn take_value(&self, w: &mut SourceWriter) {
        let pointed = &self.subject.pointed;
        w.line(format!("{pointed} *objp = ({pointed} *) _value;"));
        w.line("");
    }

    /// A function that moves a value one way.
    fn function(
        &self,
        w: &mut SourceWriter,
        verb: &str,
        body: &'a Body,
        inside: impl FnOnce(&mut SourceWriter),
    ) {
        self.forget();
        w.line("");
        w.line("static char *");
        let name = self.subject.name;
        w.line(format!(
            "tenon_{verb}_{name} (struct tenon_xdr_stream *_s, char *_at, void *_value)"
        ));
        w.braces_below(|w| {
            if !moves(body) {
                w.line("(void) _s;");
                w.line("(void) _value;");
            } else {
                self.take_value(w);
            }
            inside(w);
            w.line("return _at;");
        });
    }

    /// Writes the decoder of a type that may hold others of its kind: it limits the depth, so that no sender chooses
    /// it.
    fn write_counting_decoder(&self, w: &mut SourceWriter) {
        let name = self.subject.name;
        w.line("");
        w.line("static char *");
        w.line(format!(
            "tenon_decode_{name} (struct tenon_xdr_stream *_s, char *_at, void *_value)"
        ));
        w.braces_below(|w| {
            refuse_if(w, "tenon_depth == TENON_DEPTH_MAX");
            w.line("tenon_depth++;");
            w.line(format!(
                "_at = tenon_decode_inside_{name} (_s, _at, _value);"
            ));
            w.line("tenon_depth--;");
            w.line("return _at;");
        });
    }

    /// Writes the functions of a link: of one element, of a list of them, and of the two together,
    /// which is what the type means where it is no pointer.
    pub fn write_link(&self, w: &mut SourceWriter, id: TypeId, spot: &CLvalue<'a>, plan: &'a Plan) {
        let owns = self.owners.owns_body(&plan.body);
        w.line("");
        self.announce_lists(w, id);
        self.write_parts(w, spot, plan, owns);
        self.write_lists(w, id, owns);
        if self.forms.begins_bare(id) {
            self.write_whole(w);
        }
        if self.forms.of(id) == RoutineForm::Shared {
            self.write_routine(w, "whole_", true);
        } else {
            self.write_procedural(w, id, plan);
        }
    }

    /// The functions of lists. With `_bare`, the first element is there in any case, and is no node of its own.
    fn write_lists(&self, w: &mut SourceWriter, id: TypeId, owns: bool) {
        let (name, next) = (self.subject.name, link(self.of, id));
        let free_element = if owns {
            format!("tenon_free_{name} (xdrs, objp);")
        } else {
            "(void) xdrs;".to_owned()
        };
        w.line("");
        w.raw_text(&format!(
            "static char *
tenon_list_encode_{name} (struct tenon_xdr_stream *_s, char *_at, {name} *objp, bool_t _bare)
{{
	for (;; objp = objp->{next}, _bare = FALSE) {{
		if (!_bare) {{
			if (tenon_lacks (_s, _at, 4) && (_at = tenon_room (_s, _at, 4)) == NULL)
				return NULL;
			tenon_put4 (_at, objp != NULL);
			_at += 4;
			if (objp == NULL)
				return _at;
		}}
		if ((_at = tenon_encode_{name} (_s, _at, objp)) == NULL)
			return NULL;
	}}
}}

static char *
tenon_list_decode_{name} (struct tenon_xdr_stream *_s, char *_at, {name} **_to, bool_t _bare)
{{
	for (;; _to = &(*_to)->{next}, _bare = FALSE) {{
		if (!_bare) {{
			if (tenon_lacks (_s, _at, 4) && (_at = tenon_fetch (_s, 4)) == NULL)
				return NULL;
			_at += 4;
			if (tenon_get4 (_at - 4) == 0) {{
				*_to = NULL;
				return _at;
			}}
			if (*_to == NULL && (*_to = ({name} *) tenon_new (sizeof ({name}))) == NULL)
				return NULL;
		}}
		if ((_at = tenon_decode_{name} (_s, _at, *_to)) == NULL)
			return NULL;
	}}
}}

static void
tenon_list_free_{name} (XDR *xdrs, {name} **_to, bool_t _bare)
{{
	{name} *objp, *_next;

	for (objp = *_to; objp != NULL; objp = _next, _bare = FALSE) {{
		_next = objp->{next};
		{free_element}
		if (_bare)
			objp->{next} = NULL;
		else
			free (objp);
	}}
	*_to = NULL;
}}
"
        ));
    }

    /// The functions of an element and all that follow it.
    fn write_whole(&self, w: &mut SourceWriter) {
        let name = self.subject.name;
        w.line("");
        w.raw_text(&format!(
            "static char *
tenon_whole_encode_{name} (struct tenon_xdr_stream *_s, char *_at, void *_value)
{{
	return tenon_list_encode_{name} (_s, _at, ({name} *) _value, TRUE);
}}

static char *
tenon_whole_decode_{name} (struct tenon_xdr_stream *_s, char *_at, void *_value)
{{
	{name} *objp = ({name} *) _value;

	return tenon_list_decode_{name} (_s, _at, &objp, TRUE);
}}

static void
tenon_whole_free_{name} (XDR *xdrs, void *_value)
{{
	{name} *objp = ({name} *) _value;

	tenon_list_free_{name} (xdrs, &objp, TRUE);
}}
"
        ));
    }

    /// The routine that programs know, made of functions that begin with `which`.
    fn write_routine(&self, w: &mut SourceWriter, which: &str, owns: bool) {
        let name = self.subject.name;
        let free = if owns {
            format!("tenon_{which}free_{name}")
        } else {
            "NULL".to_owned()
        };
        let verbs = format!("tenon_{which}encode_{name}, tenon_{which}decode_{name}");
        self.write_call(w, &format!("tenon_marshal (xdrs, objp, {verbs}, {free})"));
    }

    /// The routine that programs know, which is one call.
    pub fn write_call(&self, w: &mut SourceWriter, call: &str) {
        self.routine(w, |w| {
            w.line(format!("bool_t _done = {call};"));
            w.line("");
            w.line("return _done;");
        });
    }

    /// The routine that programs know. It declares what rpcgen does: builds edit that, or delete the line. A declaration
    /// has to follow, for the attribute in front.
    pub fn routine(&self, w: &mut SourceWriter, inside: impl FnOnce(&mut SourceWriter)) {
        let RoutineSignature {
            name, parameter, ..
        } = &self.subject;
        w.line("");
        w.line("bool_t");
        w.line(format!("xdr_{name} (XDR *xdrs, {parameter})"));
        w.braces_below(|w| {
            w.line("TENON_UNUSED");
            w.line("register int32_t *buf;");
            inside(w);
        });
    }

    /// Announces the functions of a type that stand further behind.
    pub fn declare(&self, w: &mut SourceWriter, id: TypeId, is_link: bool) {
        self.announce(w, "encode");
        self.announce(w, "decode");
        let name = self.subject.name;
        if self.owners.owns_element(id) {
            w.line(format!("static void tenon_free_{name} (XDR *, void *);"));
        }
        if is_link {
            self.announce_lists(w, id);
        }
    }

    fn announce(&self, w: &mut SourceWriter, verb: &str) {
        let name = self.subject.name;
        w.line(format!(
            "static char *tenon_{verb}_{name} (struct tenon_xdr_stream *, char *, void *);"
        ));
    }

    fn announce_lists(&self, w: &mut SourceWriter, id: TypeId) {
        let name = self.subject.name;
        if self.forms.begins_bare(id) {
            for verb in ["whole_encode", "whole_decode"] {
                self.announce(w, verb);
            }
            w.line(format!(
                "static void tenon_whole_free_{name} (XDR *, void *);"
            ));
        }
        for (verb, stars) in [("encode", "*"), ("decode", "**")] {
            w.line(format!(
                "static char *tenon_list_{verb}_{name} (struct tenon_xdr_stream *, char *, {name} {stars}, bool_t);"
            ));
        }
        w.line(format!(
            "static void tenon_list_free_{name} (XDR *, {name} **, bool_t);"
        ));
    }

    /// Returns whether a type is moved by a routine that stands by itself.
    pub fn is_alone(&self, id: TypeId) -> bool {
        self.of.is_elsewhere(id) || self.forms.of(id) == RoutineForm::Procedural
    }

    /// Writes a loop that runs so often, and counts with a variable of its own.
    pub fn for_each(
        &self,
        w: &mut SourceWriter,
        length: &str,
        inside: impl FnOnce(&mut SourceWriter, &str),
    ) {
        self.with_index(|index| {
            w.braces_below(|w| {
                w.line(format!("u_int {index};"));
                w.line("");
                let head = format!("for ({index} = 0; {index} < {length}; {index}++)");
                w.braces(&head, |w| inside(w, index));
            });
        });
    }

    /// Hands out the variable of a loop.
    pub fn with_index(&self, inside: impl FnOnce(&str)) {
        let index = format!("_i{}", self.loops.get());
        self.loops.set(self.loops.get() + 1);
        inside(&index);
        self.loops.set(self.loops.get() - 1);
    }

    /// Returns whether the discriminant of the union at `spot` is moved by a routine of its own.
    pub fn is_left_to_c(&self, spot: &CLvalue<'a>) -> bool {
        planned::is_left_to_c(self.of.schema, spot.union(self.of).union)
    }

    /// Returns the bound on elements or bytes: any number, if there is no bound.
    pub fn any_bound(&self, at: &CLvalue<'a>, bound: u32) -> String {
        let bound = at.bound(self.of, bound);
        bound.unwrap_or_else(|| format!("{}u", u32::MAX))
    }

    /// Writes a switch over the union at `spot`; `arm` writes what is to be done with what an arm holds,
    /// and `otherwise` is what is done where no arm is selected.
    pub fn switch(
        &self,
        w: &mut SourceWriter,
        spot: &CLvalue<'a>,
        otherwise: &str,
        arm: impl Fn(&mut SourceWriter, SelectedArm, &CLvalue<'a>),
    ) {
        let UnionDefinition { union, written, .. } = spot.union(self.of);
        let discriminant = self.discriminant(spot);
        w.line(format!("switch ({}) {{", discriminant.value()));
        let held = |field: Option<&'a Field>, spelling: Option<&'a Spelling>| {
            let parts = field.zip(spelling);
            parts.map(|(field, spelling)| spot.arm(self.of, field, spelling))
        };
        for (index, definition) in union.arms.iter().enumerate() {
            for label in &written.labels[index] {
                w.line(format!("case {label}:"));
            }
            let holds = held(definition.field.as_ref(), written.arms[index].as_ref());
            w.indented(|w| {
                if let Some(holds) = holds {
                    arm(w, SelectedArm::Arm(index), &holds);
                }
                w.line("break;");
            });
        }
        w.line("default:");
        w.indented(|w| match (&union.default, &written.default) {
            (Some(field), Some(spelling)) => {
                if let Some(holds) = held(field.as_ref(), spelling.as_ref()) {
                    arm(w, SelectedArm::Default, &holds);
                }
                w.line("break;");
            }
            _ => w.line(otherwise),
        });
        w.line("}");
    }

    /// The discriminant of the union at `spot`.
    pub fn discriminant(&self, spot: &CLvalue<'a>) -> CLvalue<'a> {
        let UnionDefinition { union, written, .. } = spot.union(self.of);
        let ty = &union.discriminant_type;
        spot.discriminant(&union.discriminant, ty, &written.discriminant)
    }
}
