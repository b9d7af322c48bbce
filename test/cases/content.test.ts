import nodeFs from 'node:fs';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect } from 'vitest';
import { inEveryFace, once } from './ground.ts';

/** CASES.md, 22 to 26, as far as reading and writing bytes goes. */
describe('content', () => {
  const lines = (ending: string): Buffer => Buffer.concat([
    Buffer.from(Array.from({ length: 998 }, (_, index) => `line ${index + 1}${ending}`).join('')),
    Buffer.from([0x62, 0xe9, 0xff, 0x0a]),
    Buffer.from('last'),
  ]);

  inEveryFace('22. keeps a byte that is not UTF-8 on line 999 when line 1 is edited', { 'a': lines('\n') }, async (ground) => {
    const { at } = ground;
    const edited = Buffer.concat([Buffer.from('first'), (await ground.face.read(at('a'))).subarray('line 1'.length)]);
    await ground.face.write(at('a'), edited);
    await ground.face.append(at('a'), Buffer.from([0xc3]));
    await ground.reopen();
    const after = await ground.face.read(at('a'));
    expect(after.equals(Buffer.concat([Buffer.from('first'), lines('\n').subarray(6), Buffer.from([0xc3])]))).toBe(true);
  });

  inEveryFace('23. keeps line endings and BOM of what is not written', {
    'crlf': lines('\r\n'), 'mixed': '\ufeffone\r\ntwo\nthree\r', 
  }, async ({ at, face, fs }) => {
    const fd = fs.openSync(at('crlf'), 'r+');
    fs.writeSync(fd, Buffer.from('LINE'), 0, 4, 0);
    fs.closeSync(fd);
    await face.append(at('mixed'), '\nfour');
    expect((await face.read(at('crlf'))).subarray(4).equals(lines('\r\n').subarray(4))).toBe(true);
    expect(String(await face.read(at('mixed')))).toBe('\ufeffone\r\ntwo\nthree\r\nfour');
  });

  const binary = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * index) & 255));
  inEveryFace('24. copies binary files unchanged', { 'a': binary, 'small': binary.subarray(0, 300) }, async (ground) => {
    const { at } = ground;
    await ground.face.copy(at('a'), at('b'));
    await ground.face.copy(at('small'), at('c'));
    await ground.face.write(at('d'), binary);
    await ground.reopen();
    for (const name of ['b', 'd']) expect((await ground.face.read(at(name))).equals(binary)).toBe(true);
    expect((await ground.face.read(at('c'))).equals(binary.subarray(0, 300))).toBe(true);
  });

  once('25. appends at the end whatever position a descriptor with O_APPEND is given', { 'a': '0123456789' }, async ({ at, fs }) => {
    const plain = fs.openSync(at('a'), 'r+'), append = fs.openSync(at('a'), 'a+');
    fs.writeSync(append, Buffer.from('AB'), 0, 2, 0);
    fs.writeSync(plain, Buffer.from('xy'), 0, 2, 0);
    fs.writeSync(plain, 'z', 14);
    fs.writeSync(append, 'C');
    await fs.promises.writeFile(at('a'), 'D', { flag: 'a' });
    const handle = await fs.promises.open(at('a'), 'a');
    await handle.write('E', 0);
    await handle.close();
    await new Promise<void>((resolve, reject) => {
      fs.write(append, Buffer.from('F'), 0, 1, 3, (error) => (error ? reject(error) : resolve()));
    });
    const stream = fs.createWriteStream(at('a'), { flags: 'a', start: 2 });
    await new Promise((resolve) => stream.end('G', () => resolve(undefined)));
    expect(fs.readFileSync(at('a'), 'latin1')).toBe('xy23456789AB\0\0zCDEFG');
    const all = Buffer.alloc(30);
    expect(fs.readSync(append, all, 0, 30, 0)).toBe(20);
    expect(fs.fstatSync(plain).size).toBe(20);
    fs.ftruncateSync(plain, 3);
    fs.writeSync(append, '!');
    expect(fs.readFileSync(at('a'), 'latin1')).toBe('xy2!');
    fs.closeSync(plain);
    fs.closeSync(append);
  });

  once('25. keeps a file open across its unlinking and renaming', { 'a': 'lower', 'b': 'other' }, async ({ at, fs }) => {
    const a = fs.openSync(at('a'), 'r+'), b = fs.openSync(at('b'), 'r');
    fs.unlinkSync(at('a'));
    fs.writeFileSync(at('a'), 'another file');
    fs.renameSync(at('a'), at('b'));
    expect(fs.readFileSync(b, 'utf8')).toBe('other');
    fs.writeSync(a, 'LOW', 0);
    const bytes = Buffer.alloc(5);
    fs.readSync(a, bytes, 0, 5, 0);
    expect(String(bytes)).toBe('LOWer');
    expect(fs.fstatSync(a).nlink).toBe(0);
    expect(fs.fstatSync(b).nlink).toBe(0);
    expect(fs.readFileSync(at('b'), 'utf8')).toBe('another file');
    fs.closeSync(a);
    fs.closeSync(b);
  });

  once('25. lets go of a FileHandle that nobody closed before the overlay was', { 'a': 'lower' }, async (ground) => {
    const thrown: unknown[] = [];
    const note = (error: unknown): void => void thrown.push(error);
    process.on('uncaughtException', note);
    try {
      await (async () => void await ground.fs.promises.open(ground.at('a'), 'r'))();
      await ground.reopen();
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      for (let turn = 0; turn < 10; turn++) {
        collect();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    } finally {
      process.off('uncaughtException', note);
    }
    expect(thrown).toEqual([]);
  });

  inEveryFace('26. fills with zeros what truncating upwards adds', { 'a': 'abc', 'b': 'abc' }, async (ground) => {
    const { at } = ground;
    await ground.face.truncate(at('a'), 6);
    await ground.face.truncate(at('b'), 1);
    await ground.face.truncate(at('b'), 3);
    await ground.face.write(at('c'), 'xyz');
    await ground.face.truncate(at('c'), 0);
    await ground.face.truncate(at('c'), 2);
    await ground.reopen();
    expect((await ground.face.read(at('a'))).toString('latin1')).toBe('abc\0\0\0');
    expect((await ground.face.read(at('b'))).toString('latin1')).toBe('a\0\0');
    expect((await ground.face.read(at('c'))).toString('latin1')).toBe('\0\0');
  });

  const FIVE_GIB = 5 * 2 ** 30;
  once('26. writes and reads beyond 4 GiB in new and in lower files', {}, async (ground) => {
    const { root, at, lowerChanged } = ground;
    const lower = path.join(root, 'sparse');
    nodeFs.writeFileSync(lower, 'begin');
    nodeFs.truncateSync(lower, FIVE_GIB);
    const fd = nodeFs.openSync(lower, 'r+');
    nodeFs.writeSync(fd, 'end', FIVE_GIB - 3);
    nodeFs.closeSync(fd);
    lowerChanged();
    const write = async (name: string, at_: number, text: string): Promise<void> => {
      const handle = await ground.fs.promises.open(at(name), 'r+');
      await handle.write(text, at_);
      await handle.close();
    };
    const read = (name: string, from: number, length: number): string => {
      const bytes = Buffer.alloc(length), opened = ground.fs.openSync(at(name), 'r');
      const n = ground.fs.readSync(opened, bytes, 0, length, from);
      ground.fs.closeSync(opened);
      return bytes.toString('latin1', 0, n);
    };
    await write('sparse', FIVE_GIB - 10, 'high');
    await write('sparse', 2 ** 32 - 2, 'across');
    ground.fs.writeFileSync(at('new'), '');
    await write('new', FIVE_GIB, 'far');
    await write('new', 2 ** 31 - 1, 'mid');
    for (const again of [false, true]) {
      if (again) await ground.reopen();
      expect(ground.fs.statSync(at('sparse')).size).toBe(FIVE_GIB);
      expect(read('sparse', 0, 7)).toBe('begin\0\0');
      expect(read('sparse', FIVE_GIB - 11, 20)).toBe('\0high\0\0\0end');
      expect(read('sparse', 2 ** 32 - 3, 8)).toBe('\0across\0');
      expect(ground.fs.statSync(at('new')).size).toBe(FIVE_GIB + 3);
      expect(read('new', FIVE_GIB - 1, 9)).toBe('\0far');
      expect(read('new', 2 ** 31 - 2, 5)).toBe('\0mid\0');
    }
    const chunks: Buffer[] = [];
    for await (const chunk of ground.fs.createReadStream(at('new'), { start: FIVE_GIB })) chunks.push(chunk as Buffer);
    expect(String(Buffer.concat(chunks))).toBe('far');
    ground.fs.truncateSync(at('new'), FIVE_GIB + 1);
    expect(read('new', FIVE_GIB, 9)).toBe('f');
  });
});
