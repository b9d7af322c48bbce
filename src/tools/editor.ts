import { FsError, type FileGuard, type GuardedFiles, type Written } from '../index.ts';
import { toBytes, unreachable } from '../index/front-end.ts';
import { changeData, diffOf } from './difference.ts';
import { endingAround, linesOf, startOf, withEndings } from './lines.ts';
import { view } from './read.ts';
import { joined } from './walk.ts';
import { toolOf, ToolInputError, type Bench, type Tool, type ToolAnswer } from './tool.ts';
import { editing, withRemedy, writtenText } from './write.ts';

/** Changes to one file that can be taken back, in number. */
const UNDO_STEPS = 100;
/** Levels of a directory that a view shows. */
const LEVELS = 2;

interface Input {
  readonly command: 'view' | 'create' | 'str_replace' | 'insert' | 'undo_edit';
  readonly path: string;
  readonly view_range?: readonly number[];
  readonly file_text?: string;
  readonly old_str?: string;
  readonly new_str?: string;
  readonly insert_line?: number;
  readonly insert_text?: string;
}

/** What an editor did to files, to be taken back: newest last. */
type History = Map<string, Written[]>;

/** `str_replace_editor`, or the same by another name: view, create, str_replace, insert, undo_edit. */
export function editorTool(bench: Bench, name: 'str_replace_editor' | 'str_replace_based_edit_tool'): Tool {
  const history: History = new Map();
  return toolOf({
    name,
    description: 'Views and changes text files. `view` shows a file with numbered lines, or a directory two levels deep; `create` writes a whole file; `str_replace` replaces ' +
      'a text that is there once; `insert` puts a text after a line; `undo_edit` takes back the last change this tool made to a file. A file has to be viewed before it is changed.',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'undo_edit'], description: 'What to do.' },
      path: { type: 'string', description: 'The file or directory: absolute, or relative to the root of the tree.' },
      view_range: { type: 'array', items: { type: 'integer' }, description: 'Of `view`: the first and the last line to show, from 1; -1 is the end of the file.' },
      file_text: { type: 'string', description: 'Of `create`: all that the file is to hold.' },
      old_str: { type: 'string', description: 'Of `str_replace`: the text to replace, exactly as it is in the file.' },
      new_str: { type: 'string', description: 'Of `str_replace`: the text to put in its place; nothing where it is left out. Of `insert`: the text to put in.' },
      insert_line: { type: 'integer', minimum: 0, description: 'Of `insert`: the line after which to put it; 0 is the beginning of the file.' },
      insert_text: { type: 'string', description: 'Of `insert`: the text to put in.' },
    },
    required: ['command', 'path'],
    act: (input: Input) => {
      switch (input.command) {
        case 'view': return viewed(bench, name, input);
        case 'create': return created(bench.files, history, input.path, needed(name, 'create', 'file_text', input.file_text));
        case 'str_replace': return replaced(bench.files, history, input, needed(name, 'str_replace', 'old_str', input.old_str));
        case 'insert': return inserted(bench.files, history, input.path, needed(name, 'insert', 'insert_line', input.insert_line),
          needed(name, 'insert', 'insert_text', input.insert_text ?? input.new_str));
        case 'undo_edit': return undone(bench.files, history, input.path);
        default: return unreachable(input.command);
      }
    },
  });
}

function needed<T>(tool: string, command: string, parameter: string, value: T | undefined): T {
  if (value === undefined) throw new ToolInputError(`${tool}: "${parameter}" is missing, which ${command} needs`);
  return value;
}

function viewed(bench: Bench, tool: string, { path, view_range }: Input): ToolAnswer {
  const isDirectory = bench.files.stat(path, { verb: 'read' })?.type === 'directory';
  if (view_range === undefined) return isDirectory ? tree(bench, path) : view(bench, path, { offset: 1, limit: bench.limits.lines });
  if (isDirectory) throw new ToolInputError(`${tool}: "view_range" is for files, and "${path}" is a directory`);
  const [from, to] = view_range;
  if (view_range.length !== 2 || from === undefined || to === undefined || from < 1 || (to !== -1 && to < from)) {
    throw new ToolInputError(`${tool}: "view_range" has to be [first, last], from 1, the last not before the first, or -1`);
  }
  return view(bench, path, { offset: from, limit: Math.min(bench.limits.lines, to === -1 ? Infinity : to - from + 1) });
}

function tree({ files, limits }: Bench, path: string): ToolAnswer {
  const entries: { path: string; type: string }[] = [];
  const gather = (directory: string, level: number): void => {
    for (const { name, type } of files.list(directory, 'read')) {
      const child = joined(directory, name);
      if (name.startsWith('.')) continue;
      entries.push({ path: child.toWellFormed(), type });
      if (type === 'directory' && level < LEVELS) gather(child, level + 1);
    }
  };
  gather(path, 1);
  const lines = entries.slice(0, limits.entries).map((entry) => entry.type === 'directory' ? `${entry.path}/` : entry.path);
  if (entries.length > lines.length) lines.push(`(${lines.length} of ${entries.length} entries)`);
  return { text: [`${path}, ${LEVELS} levels deep, without hidden names:`, ...lines].join('\n'), data: { entries } };
}

function created(files: GuardedFiles, history: History, path: string, text: string): ToolAnswer {
  return withRemedy(path, () => {
    const written = remembered(history, files.write(path, toBytes(text)));
    return { text: writtenText(path, written), data: changeData(written) };
  });
}

function replaced(files: GuardedFiles, history: History, { path, new_str = '' }: Input, old: string): ToolAnswer {
  return editing(files, path, [{ old_string: old, new_string: new_str }], (written) => remembered(history, written));
}

function inserted(files: GuardedFiles, history: History, path: string, line: number, text: string): ToolAnswer {
  return withRemedy(path, () => {
    const written = remembered(history, files.edit(path, (before) => {
      const lines = linesOf(before), last = lines.at(-1);
      if (line > lines.length) throw new ToolInputError(`insert_line ${line} is out of range for "${path}" (${lines.length} lines)`);
      const at = line === 0 ? startOf(before) : lines[line - 1]?.next ?? before.length, ending = endingAround(before, Math.max(0, at - 1));
      const isUnended = last !== undefined && at === before.length && last.end === last.next;
      // Whole lines go in: what they are put after ends before them, what follows them begins a line of its own.
      const whole = `${isUnended ? '\n' : ''}${!isUnended && !text.endsWith('\n') && text !== '' ? `${text}\n` : isUnended ? text.replace(/\r?\n$/, '') : text}`;
      const put = withEndings(whole, () => ending);
      return { bytes: Buffer.concat([before.subarray(0, at), put, before.subarray(at)]), splices: [[at, 0, put.length]] };
    }));
    return { text: `Inserted after line ${line} of "${path}".`, data: changeData(written) };
  });
}

function undone(files: GuardedFiles, history: History, path: string): ToolAnswer {
  return withRemedy(path, () => {
    const key = files.resolve(path), steps = history.get(key) ?? [], step = steps.at(-1);
    if (step === undefined) throw new FsError('FS_EDIT_NOT_FOUND', `there is no edit of "${path}" to undo`);
    const guard: FileGuard = { kind: 'version', version: step.version };
    if (step.before === undefined) {
      // What it created goes, unless somebody has changed it since.
      if (files.version(path) !== step.version) throw new FsError('FS_STALE_VERSION', `cannot edit "${path}": file changed since it was read`);
      files.remove(path);
    } else files.write(path, step.before.bytes, { guard });
    steps.pop();
    return {
      text: `Took back the last edit of "${path}".`,
      data: { path: key.toWellFormed(), operation: step.before === undefined ? 'delete' : 'update', version: step.before?.version, before: step.version, ...diffOf(key, step.after, step.before?.bytes) },
    };
  });
}

function remembered(history: History, written: Written): Written {
  const steps = history.get(written.path) ?? [];
  // What was there was too large to be held: from here there is no way back.
  if (written.operation === 'update' && written.before === undefined) steps.length = 0;
  else steps.push(written);
  if (steps.length > UNDO_STEPS) steps.shift();
  history.set(written.path, steps);
  return written;
}
