//! The functions of one type: what is common to encoding, decoding and freeing.

use std::cell::Cell;

use tenon_plan::links::is_link;
use tenon_plan::{Body, Plan};
use tenon_schema::written::{Spelling, WrittenType, WrittenUnion};
use tenon_schema::{Field, TypeId, TypeKind, Union};

use super::free::Owners;
use crate::c::spot::{Spot, link};
use crate::c::{Interface, planned};
use crate::writer::Writer;

/// The functions of one type, in the making.
pub struct Routine<'a> {
    pub of: Interface<'a>,
    pub owners: &'a Owners,
    /// The name of the type.
    name: &'a str,
    /// What the functions take behind the stream.
    parameter: &'a str,
    /// Words of the space that the function at hand needs.
    space: Cell<u32>,
    /// How many loops are open.
    loops: Cell<u32>,
}

impl<'a> Routine<'a> {
    pub fn new(of: Interface<'a>, owners: &'a Owners, name: &'a str, parameter: &'a str) -> Self {
        Self {
            of,
            owners,
            name,
            parameter,
            space: Cell::new(0),
            loops: Cell::new(0),
        }
    }

    /// Writes the functions of a type, and the routine in front of them.
    pub fn write(&self, w: &mut Writer, spot: &Spot<'a>, plan: &'a Plan, owns: bool) {
        self.write_parts(w, spot, plan, owns);
        let calls = ["encode", "decode", "free"].map(|verb| match (verb, owns) {
            ("free", false) => "TRUE".to_owned(),
            _ => format!("tenon_{verb}_{} (xdrs, objp)", self.name),
        });
        self.write_routine(w, calls);
    }

    fn write_parts(&self, w: &mut Writer, spot: &Spot<'a>, plan: &'a Plan, owns: bool) {
        let body = &plan.body;
        self.function(w, "encode", |w| self.encode(w, spot, body));
        if plan.recursive {
            let mut inside = Writer::with_tabs();
            self.function(&mut inside, "decode_inside", |w| self.decode(w, spot, body));
            self.write_counting_decoder(w, &inside.finish());
        } else {
            self.function(w, "decode", |w| self.decode(w, spot, body));
        }
        if owns {
            self.function(w, "free", |w| self.free(w, spot, body));
        }
    }

    /// The decoder of a type that may hold others of its kind: who sends it does not choose how deep.
    fn write_counting_decoder(&self, w: &mut Writer, inside: &str) {
        let (name, parameter) = (self.name, self.parameter);
        if inside.contains(&format!("tenon_decode_{name} (")) {
            w.line("");
            w.line(format!(
                "static bool_t tenon_decode_{name} (XDR *, {name} *);"
            ));
        }
        w.raw_text(inside);
        w.line("");
        w.line("static bool_t");
        w.line(format!("tenon_decode_{name} (XDR *xdrs, {parameter})"));
        w.braces_below(|w| {
            w.line("bool_t done;");
            w.line("");
            refuse_if(w, "tenon_depth == TENON_DEPTH_MAX");
            w.line("tenon_depth++;");
            w.line(format!("done = tenon_decode_inside_{name} (xdrs, objp);"));
            w.line("tenon_depth--;");
            w.line("return done;");
        });
    }

    /// Writes the functions of a link: of one element, of a list of them, and of the two together,
    /// which is what the type means where it is no pointer.
    pub fn write_link(&self, w: &mut Writer, id: TypeId, spot: &Spot<'a>, plan: &'a Plan) {
        let owns = self.owners.owns_body(&plan.body);
        w.line("");
        self.declare_lists(w);
        self.write_parts(w, spot, plan, owns);
        self.write_lists(w, id, owns);
        let next = link(self.of, id);
        let name = self.name;
        let calls = ["encode", "decode", "free"].map(|verb| {
            let at = match verb {
                "encode" => "",
                _ => "&",
            };
            let rest = format!("tenon_list_{verb}_{name} (xdrs, {at}objp->{next})");
            match (verb, owns) {
                ("free", false) => rest,
                _ => format!("tenon_{verb}_{name} (xdrs, objp) && {rest}"),
            }
        });
        self.write_routine(w, calls);
    }

    fn write_lists(&self, w: &mut Writer, id: TypeId, owns: bool) {
        let (name, next) = (self.name, link(self.of, id));
        w.line("");
        w.line("static bool_t");
        w.line(format!(
            "tenon_list_encode_{name} (XDR *xdrs, {name} *objp)"
        ));
        w.raw_text(&format!(
            "{{
	for (; objp != NULL; objp = objp->{next})
		if (!tenon_put_word (xdrs, 1) || !tenon_encode_{name} (xdrs, objp))
			return FALSE;
	return tenon_put_word (xdrs, 0);
}}

static bool_t
tenon_list_decode_{name} (XDR *xdrs, {name} **at)
{{
	uint32_t more;

	for (;; at = &(*at)->{next}) {{
		if (!tenon_get_word (xdrs, &more))
			return FALSE;
		if (!more) {{
			*at = NULL;
			return TRUE;
		}}
		if (*at == NULL && (*at = ({name} *) calloc (1, sizeof ({name}))) == NULL)
			return FALSE;
		if (!tenon_decode_{name} (xdrs, *at))
			return FALSE;
	}}
}}
"
        ));
        w.line("");
        w.line("static bool_t");
        w.line(format!("tenon_list_free_{name} (XDR *xdrs, {name} **at)"));
        let free_element = match owns {
            true => format!("if (!tenon_free_{name} (xdrs, objp))\n\t\t\treturn FALSE;"),
            false => "(void) xdrs;".to_owned(),
        };
        w.raw_text(&format!(
            "{{
	{name} *objp, *next;

	for (objp = *at; objp != NULL; objp = next) {{
		next = objp->{next};
		{free_element}
		free (objp);
	}}
	*at = NULL;
	return TRUE;
}}
"
        ));
    }

    /// The routine that programs know.
    fn write_routine(&self, w: &mut Writer, [encode, decode, free]: [String; 3]) {
        w.line("");
        w.line("bool_t");
        w.line(format!("xdr_{} (XDR *xdrs, {})", self.name, self.parameter));
        w.braces_below(|w| {
            w.line("switch (xdrs->x_op) {");
            for (op, call) in [("ENCODE", encode), ("DECODE", decode), ("FREE", free)] {
                w.line(format!("case XDR_{op}:"));
                w.indented(|w| w.line(format!("return {call};")));
            }
            w.line("}");
            w.line("return FALSE;");
        });
    }

    /// Announces the functions of a type that stand further behind.
    pub fn declare(&self, w: &mut Writer, id: TypeId) {
        let name = self.name;
        for verb in ["encode", "decode", "free"] {
            if verb != "free" || self.owners.owns_element(id) {
                w.line(format!(
                    "static bool_t tenon_{verb}_{name} (XDR *, {name} *);"
                ));
            }
        }
        if is_link(self.of.schema, id) {
            self.declare_lists(w);
        }
    }

    fn declare_lists(&self, w: &mut Writer) {
        let name = self.name;
        for (verb, stars) in [("encode", "*"), ("decode", "**"), ("free", "**")] {
            w.line(format!(
                "static bool_t tenon_list_{verb}_{name} (XDR *, {name} {stars});"
            ));
        }
    }

    fn function(&self, w: &mut Writer, verb: &str, body: impl FnOnce(&mut Writer)) {
        self.space.set(0);
        let mut inside = Writer::with_tabs();
        inside.indented(body);
        let inside = inside.finish();
        w.line("");
        w.line("static bool_t");
        w.line(format!(
            "tenon_{verb}_{} (XDR *xdrs, {})",
            self.name, self.parameter
        ));
        w.braces_below(|w| {
            let has_buf = inside.contains("buf ");
            if has_buf {
                w.line("register int32_t *buf;");
            }
            if self.space.get() > 0 {
                w.line(format!("int32_t _space[{}];", self.space.get()));
            }
            if has_buf || self.space.get() > 0 {
                w.line("");
            }
            if !inside.contains("(xdrs") {
                w.line("(void) xdrs;");
            }
            if !inside.contains("objp") {
                w.line("(void) objp;");
            }
            w.raw_text(&inside);
            w.line("return TRUE;");
        });
    }

    /// Sees to it that the function has a space of so many bytes.
    pub fn need_space(&self, bytes: u32) {
        self.space.set(self.space.get().max(bytes / 4));
    }

    /// Writes the inside of a loop, which counts with a variable of its own.
    pub fn with_index(&self, w: &mut Writer, inside: impl FnOnce(&mut Writer, &str)) {
        let index = format!("_i{}", self.loops.get());
        self.loops.set(self.loops.get() + 1);
        inside(w, &index);
        self.loops.set(self.loops.get() - 1);
    }

    /// `if (!call) return FALSE;`
    pub fn must(&self, w: &mut Writer, call: &str) {
        refuse_if(w, &format!("!{call}"));
    }

    /// The union at `spot` and how it is written.
    pub fn union(&self, spot: &Spot<'a>) -> (&'a Union, &'a WrittenUnion) {
        let id = spot.union(self.of);
        match (&self.of.schema.type_def(id).kind, self.of.written_type(id)) {
            (TypeKind::Union(union), WrittenType::Union(written)) => (union, written),
            _ => unreachable!("the plan switches by unions"),
        }
    }

    /// Whether the discriminant of the union at `spot` is moved by a routine of its own.
    pub fn is_left_to_c(&self, spot: &Spot<'a>) -> bool {
        planned::is_left_to_c(self.of.schema, self.union(spot).0)
    }

    /// How many elements or bytes there may be: any number, if there is no bound.
    pub fn any_bound(&self, at: &Spot<'a>, bound: u32) -> String {
        let bound = at.bound(self.of, bound);
        bound.unwrap_or_else(|| format!("{}u", u32::MAX))
    }

    /// Writes a switch over the union at `spot`; `arm` writes what is to be done with what an arm holds,
    /// and `otherwise` is what is done where no arm is selected.
    pub fn switch(
        &self,
        w: &mut Writer,
        spot: &Spot<'a>,
        bodies: (&'a [tenon_plan::Arm], &'a Option<Body>),
        otherwise: &str,
        arm: impl Fn(&mut Writer, &Spot<'a>, &'a Body),
    ) {
        let (union, written) = self.union(spot);
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
                    arm(w, &holds, &bodies.0[index].body);
                }
                w.line("break;");
            });
        }
        w.line("default:");
        w.indented(|w| match (bodies.1, &union.default, &written.default) {
            (Some(body), Some(field), Some(spelling)) => {
                if let Some(holds) = held(field.as_ref(), spelling.as_ref()) {
                    arm(w, &holds, body);
                }
                w.line("break;");
            }
            _ => w.line(otherwise),
        });
        w.line("}");
    }

    /// The discriminant of the union at `spot`.
    pub fn discriminant(&self, spot: &Spot<'a>) -> Spot<'a> {
        let (union, written) = self.union(spot);
        let ty = &union.discriminant_type;
        spot.discriminant(&union.discriminant, ty, &written.discriminant)
    }
}

/// `if (condition) return FALSE;`
pub fn refuse_if(w: &mut Writer, condition: &str) {
    w.line(format!("if ({condition})"));
    w.indented(|w| w.line("return FALSE;"));
}
