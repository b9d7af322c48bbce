import { FsError, remediateFsError, type GuardedFiles, type Written } from '../index.ts';
import { toBytes } from '../index/front-end.ts';
import { changeData } from './difference.ts';
import { replaceText, type Replacement } from './replace.ts';
import { toolOf, type Bench, type Tool, type ToolAnswer } from './tool.ts';

const FILE_PATH = { type: 'string', description: 'The file: absolute, or relative to the root of the tree.' } as const;
const OLD = { type: 'string', description: 'The text to replace, exactly as it is in the file. It has to be there once, or `replace_all` be set.' } as const;
const NEW = { type: 'string', description: 'The text to put in its place, literally.' } as const;
const ALL = { type: 'boolean', description: 'Whether to replace all it matches. Default false.' } as const;

/** Does `act`, and gives its refusals the remedy that a model needs. */
export function withRemedy<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw remediateFsError(error, error instanceof FsError ? error.path ?? path : path);
  }
}

/** `write`: a whole file. */
export function writeTool({ files }: Bench): Tool {
  return toolOf({
    name: 'write',
    description: 'Writes a whole file: creates it, with the directories above it, or replaces all of its content. A file that is there has to be read first.',
    properties: { file_path: FILE_PATH, content: { type: 'string', description: 'All that the file is to hold.' } },
    required: ['file_path', 'content'],
    act: ({ file_path, content }: { file_path: string; content: string }) => withRemedy(file_path, () => {
      const written = files.write(file_path, toBytes(content));
      return { text: writtenText(file_path, written), data: changeData(written) };
    }),
  });
}

/** Says what a write did. */
export function writtenText(path: string, { operation, after }: Written): string {
  return `${operation === 'create' ? 'Created' : 'Updated'} "${path}" (${after.length} bytes).`;
}

/** `edit`: one text of a file. */
export function editTool({ files }: Bench): Tool {
  return toolOf({
    name: 'edit',
    description: 'Replaces a text in a file, literally. The file has to be read first. All else in it stays as it is, byte for byte; line endings are those of the lines around.',
    properties: { file_path: FILE_PATH, old_string: OLD, new_string: NEW, replace_all: ALL },
    required: ['file_path', 'old_string', 'new_string'],
    act: ({ file_path, ...replacement }: Replacement & { file_path: string }) => editing(files, file_path, [replacement]),
  });
}

/** `multiEdit`: several texts of a file, all or none. */
export function multiEditTool({ files }: Bench): Tool {
  return toolOf({
    name: 'multiEdit',
    description: 'Replaces several texts in one file, one after the other, each in what the one before left: all of them, or none where one fails, which the message names.',
    properties: {
      file_path: FILE_PATH,
      edits: {
        type: 'array', minItems: 1, description: 'The replacements, in order.',
        items: {
          type: 'object', properties: { old_string: OLD, new_string: NEW, replace_all: ALL }, required: ['old_string', 'new_string'], additionalProperties: false,
        },
      },
    },
    required: ['file_path', 'edits'],
    act: ({ file_path, edits }: { file_path: string; edits: readonly Replacement[] }) => editing(files, file_path, edits),
  });
}

/** Applies replacements to a file in turn; `done` is told of what came of it. */
export function editing(files: GuardedFiles, path: string, edits: readonly Replacement[], done?: (written: Written) => void): ToolAnswer {
  return withRemedy(path, () => {
    let count = 0;
    const written = files.edit(path, (before) => {
      let bytes = before;
      const splices: (readonly [number, number, number])[] = [];
      for (const [at, edit] of edits.entries()) {
        const edited = numbered(edits.length, at, () => replaceText(bytes, edit, path));
        bytes = edited.bytes;
        splices.push(...edited.splices);
        count += edited.count;
      }
      return { bytes, splices };
    });
    done?.(written);
    return { text: `Edited "${path}": ${count} ${count === 1 ? 'replacement' : 'replacements'}.`, data: { ...changeData(written), replacements: count } };
  });
}

function numbered<T>(count: number, at: number, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (count === 1 || !(error instanceof FsError)) throw error;
    throw new FsError(error.code, `edit ${at + 1} of ${count}: ${error.message}`, { cause: error });
  }
}
