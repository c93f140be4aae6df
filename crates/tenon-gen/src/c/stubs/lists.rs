//! Linked lists: loops along the links, in both directions.

use tenon_plan::{Lists, Order, Plan, Scalar};
use tenon_schema::TypeId;

use super::chunks::CFunction;
use super::codec::{CodecDirection, CodecWriter, LabelledLvalue, get_number, put_number};
use crate::c::spot::link;

impl<'a> CodecWriter<'a> {
    /// The functions of a link: of one element, of a list of them, and of the two together, which is what
    /// the type means where it is no pointer.
    pub fn of_link(&self, id: TypeId, here: &LabelledLvalue<'a>, plan: &'a Plan) -> Vec<CFunction> {
        let name = &self.of.schema.type_def(id).name;
        let next = link(self.of, id);
        let one = [CodecDirection::Encode, CodecDirection::Decode]
            .map(|way| self.function(way, self.one_name(way, name), name, here, plan));
        let mut chunks = Vec::from(one);
        chunks.push(self.encode_list_function(name, next, plan));
        chunks.push(self.encode_bare_function(name, next));
        match self.representation().lists {
            Lists::Flagged => chunks.extend(self.decode_flagged_functions(name, next, plan)),
            Lists::Counted => chunks.extend(self.decode_counted_functions(name, next, plan)),
        }
        chunks
    }

    fn encode_list_function(&self, name: &str, next: &str, plan: &Plan) -> CFunction {
        let one = self.one_name(CodecDirection::Encode, name);
        let swapped = self.swapped(CodecDirection::Encode);
        let align = match plan.align {
            0 | 1 => String::new(),
            align => format!(
                "\t\tif (!tenon_align (out, {align}, 0, \"{name}\"))\n\t\t\treturn false;\n"
            ),
        };
        let body = match self.representation().lists {
            Lists::Flagged => {
                let bytes = self.representation().bytes(Scalar::Bool);
                let put = put_number(bytes, "to", "at != NULL", swapped);
                format!(
                    "	unsigned char *to;

	for (;; at = at->{next}) {{
		to = tenon_room (out, {bytes}, \"{name}\");
		if (to == NULL)
			return false;
		{put};
		if (at == NULL)
			return true;
{align}		if (!{one} (out, at))
			return false;
	}}
"
                )
            }
            Lists::Counted => format!(
                "	const {name} *each;
	uint32_t count = 0;

	for (each = at; each != NULL && count < UINT32_MAX; each = each->{next})
		count++;
	if (tenon_begin (out, count, at, UINT32_MAX, 0, {swapped}, \"{name}\") == NULL)
		return false;
	for (; count > 0; count--, at = at->{next}) {{
{align}		if (!{one} (out, at))
			return false;
	}}
	return true;
"
            ),
        };
        let head = format!(
            "{} (tenon_encoder *out, const {name} *at)",
            self.list_name(CodecDirection::Encode, name)
        );
        chunk(self.list_name(CodecDirection::Encode, name), &head, &body)
    }

    fn encode_bare_function(&self, name: &str, next: &str) -> CFunction {
        let list = self.list_name(CodecDirection::Encode, name);
        let call = match self.representation().lists {
            Lists::Flagged => {
                let one = self.one_name(CodecDirection::Encode, name);
                format!("{one} (out, it) && {list} (out, it->{next})")
            }
            Lists::Counted => format!("{list} (out, it)"),
        };
        let whole = self.function_name(CodecDirection::Encode, name);
        let head = format!("{whole} (tenon_encoder *out, const void *value)");
        let body = format!("\tconst {name} *it = (const {name} *) value;\n\n\treturn {call};\n");
        chunk(whole, &head, &body)
    }

    fn decode_flagged_functions(&self, name: &str, next: &str, plan: &Plan) -> [CFunction; 2] {
        let (one, list) = (
            self.one_name(CodecDirection::Decode, name),
            self.list_name(CodecDirection::Decode, name),
        );
        let bytes = self.representation().bytes(Scalar::Bool);
        let flag = get_number(bytes, "from", self.swapped(CodecDirection::Decode));
        let swapped = match self.representation().order {
            Order::Sender => "\tconst bool swapped = in->swapped;\n",
            Order::Big | Order::Little => "",
        };
        let align = skip_align(name, plan.align);
        let body = format!(
            "{swapped}	const unsigned char *from;

	for (;; at = &(*at)->{next}) {{
		from = tenon_take (in, {bytes}, \"{name}\");
		if (from == NULL)
			return false;
		if ({flag} == 0)
			return true;
{align}		*at = ({name} *) tenon_zeroed (in, 1, sizeof ({name}), \"{name}\");
		if (*at == NULL || !{one} (in, *at))
			return false;
	}}
"
        );
        let head = format!("{list} (tenon_decoder *in, {name} **at)");
        let whole = self.function_name(CodecDirection::Decode, name);
        let whole_head = format!("{whole} (tenon_decoder *in, void *value)");
        let whole_body = format!(
            "	{name} *it = ({name} *) value;

	return {one} (in, it) && {list} (in, &it->{next});
"
        );
        [
            chunk(list, &head, &body),
            chunk(whole, &whole_head, &whole_body),
        ]
    }

    fn decode_counted_functions(&self, name: &str, next: &str, plan: &Plan) -> [CFunction; 3] {
        let one = self.one_name(CodecDirection::Decode, name);
        let list = self.list_name(CodecDirection::Decode, name);
        let rest = format!("tenon_rest_{}_decode_{name}", self.representation().name);
        let swapped = match self.representation().order {
            Order::Sender => "in->swapped",
            Order::Big | Order::Little => self.swapped(CodecDirection::Decode),
        };
        let align = skip_align(name, plan.align);
        let fewest = u32::try_from(plan.size.min).unwrap_or(u32::MAX);
        let count = format!(
            "	uint32_t count = 0;

	if (!tenon_count (in, &count, UINT32_MAX, {fewest}, {swapped}, \"{name}\"))
		return false;
"
        );
        let rest_body = format!(
            "	for (; count > 0; count--, at = &(*at)->{next}) {{
{align}		*at = ({name} *) tenon_zeroed (in, 1, sizeof ({name}), \"{name}\");
		if (*at == NULL || !{one} (in, *at))
			return false;
	}}
	return true;
"
        );
        let whole = self.function_name(CodecDirection::Decode, name);
        let align_first = align.replace("\t\t", "\t");
        let whole_body = format!(
            "	{name} *it = ({name} *) value;
{count}	if (count == 0)
		return tenon_fail_at (in, in->at, TENON_BAD_LIST, 0, 0, \"{name}\");
{align_first}	return {one} (in, it) && {rest} (in, &it->{next}, count - 1);
"
        );
        let rest_head = format!("{rest} (tenon_decoder *in, {name} **at, uint32_t count)");
        let list_head = format!("{list} (tenon_decoder *in, {name} **at)");
        let list_body = format!("{count}	return {rest} (in, at, count);\n");
        let whole_head = format!("{whole} (tenon_decoder *in, void *value)");
        [
            chunk(rest, &rest_head, &rest_body),
            chunk(list, &list_head, &list_body),
            chunk(whole, &whole_head, &whole_body),
        ]
    }
}

/// Returns the code that skips to the alignment of an element of a list.
fn skip_align(name: &str, align: u32) -> String {
    match align {
        0 | 1 => String::new(),
        align => {
            format!("\t\tif (!tenon_skip (in, {align}, 0, \"{name}\"))\n\t\t\treturn false;\n")
        }
    }
}

fn chunk(name: String, head: &str, body: &str) -> CFunction {
    CFunction {
        name,
        prototype: format!("static bool {head};"),
        text: format!("static bool\n{head}\n{{\n{body}}}\n"),
    }
}
