import { closeSync, openSync, renameSync, unlinkSync } from 'node:fs';
import { Output, out } from './output.ts';

/** Writes pieces to a file, which is there under its name only when it is whole, or to standard output. */
export function writtenTo(file: string | undefined, pieces: Iterable<Uint8Array>): void {
  if (file === undefined) {
    for (const piece of pieces) out.write(piece);
    return;
  }
  const part = `${file}.${process.pid}.part`, fd = openSync(part, 'wx');
  try {
    writeAll(new Output(fd), pieces);
    renameSync(part, file);
  } catch (error) {
    unlinkSync(part);
    throw error;
  } finally {
    closeSync(fd);
  }
}

function writeAll(output: Output, pieces: Iterable<Uint8Array>): void {
  for (const piece of pieces) output.write(piece);
  output.flush();
}
