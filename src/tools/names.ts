import { toolOf, type Bench, type Tool } from './tool.ts';
import { withRemedy } from './write.ts';

/** `delete`: a file, a symlink, or a directory. */
export function deleteTool({ files }: Bench): Tool {
  return toolOf({
    name: 'delete',
    description: 'Deletes a file, a symlink or an empty directory; with `recursive` a directory and all it holds. A file has to be read first, a directory listed.',
    properties: {
      path: { type: 'string', description: 'What to delete: absolute, or relative to the root of the tree.' },
      recursive: { type: 'boolean', description: 'Whether a directory goes with all it holds. Default false.' },
    },
    required: ['path'],
    act: ({ path, recursive = false }: { path: string; recursive?: boolean }) => withRemedy(path, () => {
      const removed = files.remove(path, { recursive });
      return { text: `Deleted "${path}".`, data: { path: removed.path.toWellFormed(), type: removed.type } };
    }),
  });
}

/** `move`: another name. */
export function moveTool({ files }: Bench): Tool {
  return toolOf({
    name: 'move',
    description: 'Gives a file or directory another name; the directories above it are made. What is there under the new name is replaced, if it was read before.',
    properties: {
      from: { type: 'string', description: 'What to move: absolute, or relative to the root of the tree. It has to be read (a directory: listed) first.' },
      to: { type: 'string', description: 'The name it is to have.' },
    },
    required: ['from', 'to'],
    act: ({ from, to }: { from: string; to: string }) => withRemedy(from, () => {
      const moved = files.move(from, to);
      return { text: `Moved "${from}" to "${to}".`, data: { from: moved.from.toWellFormed(), to: moved.to.toWellFormed(), replaced: moved.replaced } };
    }),
  });
}
