import fs from 'node:fs';

/** A directory is an object, a file is its text. */
export interface TinyTree { readonly [name: string]: string | TinyTree }

type Entry = string | TinyTree;

const LOOKUP = 1, FORGET = 2, GETATTR = 3, OPEN = 14, READ = 15, STATFS = 17, RELEASE = 18, INIT = 26, OPENDIR = 27, READDIR = 28,
  RELEASEDIR = 29, INTERRUPT = 36, BATCH_FORGET = 42;
const ENOENT = 2, ENOSYS = 38;

/**
 * A read-only FUSE server of a tree in memory, on the event loop: as much as the tests of namespaces need, so that they fail only
 * for what they test. Resolved when the mount has gone. `seen` is called with every name that is looked up.
 */
export async function serveTiny(device: number, tree: TinyTree, seen: (name: string) => void = () => undefined): Promise<void> {
  const entries: Entry[] = [tree, tree], numbers = new Map<Entry, number>([[tree, 1]]), buffer = Buffer.alloc(140_000);
  const numberOf = (parent: TinyTree, name: string): number => {
    const entry = parent[name] as Entry;
    // Files of the same text are one: what an entry is called does not matter here.
    if (!numbers.has(entry)) numbers.set(entry, entries.push(entry) - 1);
    return numbers.get(entry) as number;
  };
  for (;;) {
    const length = await new Promise<number>((resolve) => {
      fs.read(device, buffer, 0, buffer.length, null, (error, read) => { resolve(error === null ? read : error.errno ?? -1); });
    });
    if (length < 0) {
      // ENOENT: an interrupted request that has gone; EINTR, EAGAIN: again. At last ENODEV.
      if ([-2, -4, -11].includes(length)) continue;
      return;
    }
    const opcode = buffer.readUInt32LE(4), node = Number(buffer.readBigUInt64LE(16)), body = buffer.subarray(40, length);
    const entry = entries[node] as Entry;
    const answer = answerTo(opcode, node, entry, body, numberOf, seen);
    if (answer === undefined) continue;
    const head = Buffer.alloc(16);
    head.writeUInt32LE(16 + (typeof answer === 'number' ? 0 : answer.length), 0);
    head.writeInt32LE(typeof answer === 'number' ? -answer : 0, 4);
    buffer.copy(head, 8, 8, 16);
    try {
      fs.writeSync(device, typeof answer === 'number' ? head : Buffer.concat([head, answer]));
    } catch (error) {
      // The one who asked is not there any more.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

function answerTo(
  opcode: number, node: number, entry: Entry, body: Buffer, numberOf: (parent: TinyTree, name: string) => number, seen: (name: string) => void,
): Buffer | number | undefined {
  switch (opcode) {
    case INIT: {
      const out = Buffer.alloc(64);
      out.writeUInt32LE(7, 0); out.writeUInt32LE(31, 4); out.writeUInt32LE(131_072, 8);
      out.writeUInt16LE(12, 16); out.writeUInt16LE(9, 18); out.writeUInt32LE(131_072, 20); out.writeUInt32LE(1, 24);
      return out;
    }
    case LOOKUP: {
      const name = body.subarray(0, -1).toString();
      seen(name);
      if (typeof entry === 'string' || !Object.hasOwn(entry, name)) return ENOENT;
      const child = numberOf(entry, name), out = Buffer.alloc(40);
      out.writeBigUInt64LE(BigInt(child), 0);
      return Buffer.concat([out, attributes(child, entry[name] as Entry)]);
    }
    case GETATTR: return Buffer.concat([Buffer.alloc(16), attributes(node, entry)]);
    case OPEN: case OPENDIR: return Buffer.alloc(16);
    case READ: {
      const at = Number(body.readBigUInt64LE(8));
      return Buffer.from(entry as string).subarray(at, at + body.readUInt32LE(16));
    }
    case READDIR: {
      const at = Number(body.readBigUInt64LE(8));
      return Buffer.concat(Object.keys(entry).slice(at).map((name, index) => {
        const out = Buffer.alloc((24 + Buffer.byteLength(name) + 7) & ~7);
        out.writeBigUInt64LE(1n, 0); out.writeBigUInt64LE(BigInt(at + index + 1), 8);
        out.writeUInt32LE(Buffer.byteLength(name), 16); out.write(name, 24);
        return out;
      }));
    }
    case STATFS: return Buffer.alloc(80);
    case RELEASE: case RELEASEDIR: return Buffer.alloc(0);
    case FORGET: case BATCH_FORGET: case INTERRUPT: return undefined;
    default: return ENOSYS;
  }
}

function attributes(node: number, entry: Entry): Buffer {
  const out = Buffer.alloc(88), isFile = typeof entry === 'string';
  out.writeBigUInt64LE(BigInt(node), 0);
  out.writeBigUInt64LE(BigInt(isFile ? Buffer.byteLength(entry) : 0), 8);
  out.writeUInt32LE(isFile ? 0o100755 : 0o40755, 60);
  out.writeUInt32LE(1, 64);
  out.writeUInt32LE(process.getuid?.() ?? 0, 68); out.writeUInt32LE(process.getgid?.() ?? 0, 72);
  return out;
}
