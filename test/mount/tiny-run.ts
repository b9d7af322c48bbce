import { closeSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { openDevice } from '../../src/mount/device.ts';
import { gainPrivilege } from '../../src/mount/privilege.ts';
import { openSpace } from '../../src/mount/space.ts';
import { endAs, supervise } from '../../src/mount/supervisor.ts';
import { serveTiny } from './tiny-server.ts';

/** `tiny-run --root DIR … -- CMD …`: a run over a small tree in memory, put together as the real one is. */
const { values, positionals } = parseArgs({
  options: {
    root: { type: 'string', multiple: true }, mask: { type: 'string', multiple: true }, writable: { type: 'string', multiple: true },
    cwd: { type: 'string' }, timeout: { type: 'string' },
    'read-only': { type: 'boolean' }, 'no-network': { type: 'boolean' },
    /** Says on standard error how far it is, a word a line. */
    progress: { type: 'boolean' },
    /** Rings before the command starts. */
    ring: { type: 'boolean' },
  },
  allowPositionals: true,
});
const say = (word: string): void => { if (values.progress) writeSync(2, `${word}\n`); };

await gainPrivilege();
say('start');
const roots = values.root ?? [], names: string[] = [];
const tree = { file: 'overlay\n', script: '#!/bin/sh\necho script "$@"\n', 'no interpreter': '#!/no/such\n', sub: { deep: { f: 'deep\n' } } };
const device = openDevice();
let served: Promise<void> | undefined;
const space = await openSpace({
  device, bell: '.bell', masked: values.mask ?? [], writable: values.writable ?? [],
  roots: roots.map((path, index) => ({ path, from: roots.length === 1 ? '' : `r${index}` })),
  network: values['no-network'] ? 'none' : 'shared', outside: values['read-only'] ? 'read-only' : 'as it is',
  attached: () => {
    say('attached');
    served = serveTiny(device, roots.length === 1 ? tree : Object.fromEntries(roots.map((_, index) => [`r${index}`, { [`in${index}`]: '', ...tree }])),
      (name) => { names.push(name); });
  },
});
say('mounted');
if (values.ring) {
  space.ring();
  space.ring();
  while (names.filter((name) => name === '.bell').length < 2) await new Promise((resolve) => { setTimeout(resolve, 2); });
}
const command = space.spawn(positionals, {
  cwd: values.cwd ?? process.cwd(), env: process.env, stdio: ['inherit', 'inherit', 'inherit'],
});
say('spawned');
const outcome = await supervise(command, values.timeout === undefined ? undefined : Number(values.timeout));
say('over');
await space.end();
await served;
closeSync(device);
endAs(outcome.timedOut ? { status: 124, signal: null } : outcome);
