import type { Command } from 'commander';
import { salvageSession, verifySession, type TrustedHead, type Verification } from '../index.ts';
import { FAILED, Misuse } from './failure.ts';
import { manual } from './manual.ts';
import { withFormats, withSession, type SessionOption } from './options.ts';
import { out, say } from './output.ts';
import { withDirectory } from './reading.ts';
import { quoted, visible } from './text.ts';

interface Options extends SessionOption {
  readonly head?: string;
  readonly salvage?: string;
  readonly json?: boolean;
}

/** `palimpsest verify`. */
export function verify(command: Command): void {
  manual(command, {
    description: 'Checks a session whole: the crc and number of every line, every seal, that every event makes sense, that the contents they name are there and ' +
      'are what their digests say, and that the checkpoint tells what the events do. Whatever is not so is named.\n\n' +
      'Seals are hashes without a key: somebody who may write the session can make it up anew from any line on, seals included. That shows only to ' +
      'who has kept a head (--head): the last line of what verify prints, or overlay.head.',
    examples: [
      ['palimpsest verify', 'is all as it was written?'],
      ['palimpsest verify --session runs/42 --head 1234:sha256:9f3a…', 'and as it was when I kept that head?'],
      ['palimpsest verify --salvage saved', 'a session of what comes before the damage'],
    ],
    exit: '0 all is well; 1 something is not, or cannot be read; 2 wrong use.',
  });
  withSession(command)
    .option('--head <head>', 'a head that was kept, SEQ:SEAL or only the seal: nothing before it may have changed')
    .option('--salvage <dir>', 'make a session there, up to the first damage of the log, with all contents that are good');
  withFormats(command, { json: 'one JSON object: findings, last event, head, counts' });
  command.action((options: Options) => {
    const head = options.head === undefined ? undefined : headOf(options.head);
    return withDirectory(options, async (directory) => {
      const found = verifySession(directory, head);
      if (options.json === true) out.line(JSON.stringify(toJson(found)));
      else print(found);
      if (found.findings.length > 0) process.exitCode = FAILED;
      if (options.salvage === undefined) return;
      const saved = salvageSession(directory, options.salvage, found);
      say(`palimpsest: saved up to event ${saved} in ${quoted(options.salvage)}`);
    });
  });
}

function headOf(text: string): TrustedHead {
  const found = /^(?:(\d{1,15}):)?((?:sha256:)?[0-9a-f]{64})$/.exec(text);
  if (found === null) throw new Misuse(`--head takes SEQ:SEAL or a seal (sha256:… or 64 hex digits), not "${text}"`);
  const seal = found[2] as string;
  return { seal: seal.startsWith('sha256:') ? seal : `sha256:${seal}`, ...(found[1] !== undefined && { seq: Number(found[1]) }) };
}

function print({ findings, lastSeq, seal, sealedSeq, tornBytes, blobs, unnamed }: Verification): void {
  for (const { words } of findings) out.line(visible(words));
  if (lastSeq === undefined) return;
  if (tornBytes > 0) out.line(`${tornBytes} bytes of a last line that was not finished; its writer cuts them off`);
  if (unnamed !== undefined && unnamed > 0) out.line(`${unnamed} stored contents that no event names`);
  if (findings.length === 0) out.line(`good: ${lastSeq} events, sealed up to ${sealedSeq}; ${blobs} stored contents`);
  if (seal !== undefined) out.line(`head ${lastSeq}:${seal}`);
}

function toJson({ findings, lastSeq, seal, sealedSeq, tornBytes, blobs, unnamed }: Verification): object {
  return { good: findings.length === 0, findings, last: lastSeq ?? null, sealed: sealedSeq, head: seal ?? null, tornBytes, blobs, unnamed: unnamed ?? null };
}
