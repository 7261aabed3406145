// pintle starts pi with this extension where pi is to ask before it uses a tool.
//
// What it promises: no tool is used, be it called by the model or by another tool, but what pintle was asked for and has
// answered with "allow". With any other answer, with none, at the end of the turn, or if something goes wrong in here, the
// tool is not used. What was asked is what is done: nobody behind this extension can change it, and a call that another
// extension tries to change fails. "asks", said when a session starts, is the sign that this is in force.
//
// What it does not: other extensions do by themselves what they like, and pi runs the commands that its settings name.

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

// What the model is told of what it was refused.
const refused = "This was not allowed. Do not try it in another way; go on without it, or say what you would need.";

export default function (pi: ExtensionAPI) {
	pi.on("session_start", (_event, ctx) => ctx.ui.setStatus("pintle", "asks"));
	pi.on("tool_call", async (event, ctx) => {
		// Another extension may have put a tool of its own in the place of one of pi's.
		const tool = pi.getAllTools().find((t) => t.name === event.toolName);
		const builtin = tool?.sourceInfo.source === "builtin";
		if (builtin) plain(event.input, ctx.cwd);
		freeze(event.input);
		const question = {
			pintle: "tool_call",
			call: event.toolCallId,
			tool: event.toolName,
			builtin,
			paths: builtin ? paths(event.toolName, event.input, ctx.cwd) : [],
			input: event.input,
		};
		const answer = await ctx.ui.select(JSON.stringify(question, short), ["allow", "deny"], { signal: ctx.signal });
		return answer === "allow" ? undefined : { block: true, reason: refused };
	});
}

// plain has a file that only pi would find under its name be named as anybody would.
function plain(input: any, cwd: string) {
	if (typeof input.path === "string" && resolve(cwd, input.path) !== path(input.path, cwd)) input.path = path(input.path, cwd);
}

function freeze(value: unknown) {
	if (typeof value === "object" && value !== null) {
		Object.freeze(value);
		Object.values(value).forEach(freeze);
	}
}

// short leaves out the end of a text that is longer than pintle takes a command or a path for one.
function short(_key: string, value: unknown) {
	return typeof value === "string" && value.length > 8000 ? `${value.slice(0, 8000)} … (${value.length} characters)` : value;
}

// paths are the files that one of pi's own tools is about. A file that is not there is read under a similar name that is.
function paths(tool: string, input: any, cwd: string): string[] {
	switch (tool) {
		case "write":
		case "edit":
			return [path(input.path, cwd)];
		case "grep":
		case "find":
		case "ls":
			return [path(input.path || ".", cwd)];
		case "read": {
			const name = path(input.path, cwd);
			return [name, ...similar(name).filter((other) => other !== name && existsSync(other))];
		}
	}
	return [];
}

// path is a file as pi's tools look for it.
function path(name: string, cwd: string): string {
	name = name.replace(/[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g, " ").replace(/^@/, "");
	if (name === "~" || name.startsWith("~/")) {
		name = homedir() + name.slice(1);
	} else if (name.startsWith("file://")) {
		name = fileURLToPath(name);
	}
	return resolve(cwd, name);
}

// similar are the names that macOS gives: to screenshots, to what has accents, and in place of an apostrophe.
function similar(name: string): string[] {
	const apart = name.normalize("NFD");
	const curly = (s: string) => s.replace(/'/g, "\u2019");
	return [name.replace(/ (AM|PM)\./gi, "\u202F$1."), apart, curly(name), curly(apart)];
}
