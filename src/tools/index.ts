/** Tools for agents: what a model calls to read and change the files of an overlay. */
import type { ActorView } from '../index.ts';
import { applyPatchTool } from './apply-patch.ts';
import { editorTool } from './editor.ts';
import { grepTool } from './grep.ts';
import { globTool, listTool } from './list.ts';
import { deleteTool, moveTool } from './names.ts';
import { readTool } from './read.ts';
import { resultOf, ToolInputError, type Bench, type Limits, type Tool, type ToolResult } from './tool.ts';
import { editTool, multiEditTool, writeTool } from './write.ts';

export { FsError, remediateFsError } from '../index.ts';
export { replaceText, type Replacement } from './replace.ts';
export { ToolInputError, type InputSchema, type Limits, type PropertySchema, type Tool, type ToolAnswer, type ToolResult } from './tool.ts';

export interface ToolsOptions {
  /** Bounds of one answer: `lines` (2,000) and `bytes` (50 KiB) of a read, `lineCharacters` (2,000) of a line, `entries` (1,000) of a listing or search. */
  readonly limits?: Partial<Limits>;
}

/** The names of the tools. */
export type ToolName = 'read' | 'write' | 'edit' | 'multiEdit' | 'list' | 'glob' | 'grep' | 'delete' | 'move' | 'str_replace_editor'
  | 'str_replace_based_edit_tool' | 'apply_patch';

/** All tools of one actor, each by its name, and together. */
export interface Tools extends Readonly<Record<ToolName, Tool>> {
  readonly all: readonly Tool[];
  /** Calls a tool by its name; never throws. An unknown one is `TOOL_UNKNOWN`. */
  call(name: string, input: unknown): ToolResult;
}

const LIMITS: Limits = { lines: 2000, lineCharacters: 2000, bytes: 50 * 1024, entries: 1000 };

/**
 * The tools of one actor: `tools(overlay.as('agent-2'))`. They are synchronous; a call is one step to every other actor. What guards them
 * is the policy that the overlay has (`overlay.use`, `Overlay.open({ policy })`); without one they change what they are told to. Throws TypeError for an
 * option that is unknown or no number.
 */
export function tools(view: ActorView, options: ToolsOptions = {}): Tools {
  const bench: Bench = { files: view.files, limits: limitsOf(options) };
  const named: Readonly<Record<ToolName, Tool>> = {
    read: readTool(bench), write: writeTool(bench), edit: editTool(bench), multiEdit: multiEditTool(bench), list: listTool(bench), glob: globTool(bench),
    grep: grepTool(bench), delete: deleteTool(bench), move: moveTool(bench), str_replace_editor: editorTool(bench, 'str_replace_editor'),
    str_replace_based_edit_tool: editorTool(bench, 'str_replace_based_edit_tool'), apply_patch: applyPatchTool(bench),
  };
  return {
    ...named, all: Object.values(named),
    call: (name, input) => Object.hasOwn(named, name) ? named[name as ToolName].call(input) : resultOf(() => {
      throw new ToolInputError(`there is no tool "${name}"; there are ${Object.keys(named).join(', ')}`, 'TOOL_UNKNOWN');
    }),
  };
}

function limitsOf({ limits = {}, ...rest }: ToolsOptions): Limits {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw Object.assign(new TypeError(`tools: unknown option "${unknown}"`), { code: 'ERR_UNKNOWN_OPTION' });
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(LIMITS, name)) throw Object.assign(new TypeError(`tools: unknown option "limits.${name}"`), { code: 'ERR_UNKNOWN_OPTION' });
    if (!Number.isSafeInteger(value) || (value as number) < 1) throw Object.assign(new TypeError(`tools: "limits.${name}" has to be a whole number from 1`), { code: 'ERR_INVALID_OPTION' });
  }
  return { ...LIMITS, ...limits };
}
