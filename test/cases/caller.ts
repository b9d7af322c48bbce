/** Another process that calls the real `node:fs`: it is told by messages what to do, and answers with what came of it. */
import * as fs from 'node:fs';
import type { NodeFs } from '../model/world.ts';
import { facesOf, type Answer, type Order } from './face.ts';

const face = facesOf(fs as unknown as NodeFs).find(({ name }) => name === 'promises') as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;

process.on('message', ({ id, call, args, umask }: Order) => {
  process.umask(umask);
  void (async () => {
    let answer: Answer;
    try {
      // Messages carry a Buffer as bytes.
      const given = args.map((each) => (each instanceof Uint8Array ? Buffer.from(each) : each));
      answer = { id, result: await face[call]?.(...given) };
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      answer = { id, fault: { message, ...(code === undefined ? {} : { code }) } };
    }
    process.send?.(answer);
  })();
});
process.on('disconnect', () => process.exit());
