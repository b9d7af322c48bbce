import { decodeState } from '../core/checkpoint.ts';
import { CorruptEventError, decodeEvent } from '../core/encode.ts';
import { differenceOf } from '../core/equality.ts';
import type { Event } from '../core/event.ts';
import { evolve } from '../core/evolve.ts';
import { blobsOf } from '../core/named-blobs.ts';
import { initialState } from '../core/state.ts';
import type { Version } from '../core/version.ts';
import { SessionError, type CorruptLogError } from '../store/fault.ts';
import { glance } from '../store/glance.ts';
import type { Flaw } from '../store/log.ts';
import { checkpointOf, salvage, verifyBlobs, verifyLog } from '../store/verify.ts';

/** Something that is not as it was written. */
export interface Finding {
  /** A line of the log; a stored content; the checkpoint, which tells another state than the events do; what was before a trusted head. */
  readonly kind: 'log' | 'blob' | 'checkpoint' | 'head';
  readonly words: string;
  /** Of the log, from 1; line 1 is the header. */
  readonly line?: number;
  readonly digest?: Version;
}

/** What checking a session found. */
export interface Verification {
  readonly findings: readonly Finding[];
  /** The last event that is good; `undefined` where not even the header is. */
  readonly lastSeq: number | undefined;
  /** Bytes of the log up to there: what is worth saving. */
  readonly goodBytes: number | undefined;
  /** Hash over all of the log: what a later verification can be held to. */
  readonly seal: Version | undefined;
  /** The last event that a seal in the log vouches for: whoever has no head to compare cannot tell whether later ones were made up. */
  readonly sealedSeq: number;
  /** Of a torn last line: no damage, its writer was killed or is just writing it. */
  readonly tornBytes: number;
  readonly blobs: number;
  /** Stored contents that no event names; `undefined` where there are commits, whose records name some more. */
  readonly unnamed: number | undefined;
  /** The damage of the log. */
  readonly damage: CorruptLogError | undefined;
}

/** A head that somebody has kept: a seal, and of which event, where that is known. */
export interface TrustedHead {
  readonly seal: string;
  readonly seq?: number;
}

/**
 * Checks a session whole: every line of its log and every seal, that the events make sense and name contents that are there, every stored
 * content against its digest, the checkpoint against what the events tell; and that the log up to a trusted head is what it was. Throws `SessionError`
 * where no session is. Beside a live writer it checks what is written so far.
 */
export function verifySession(directory: string, head?: TrustedHead): Verification {
  const findings: Finding[] = [], fold = new Fold(directory, findings);
  const verdict = verifyLog(directory, { inspect: (line, seq) => fold.take(line, seq), ...(head && { sought: head.seal }) });
  const { goodSeq: lastSeq, goodBytes, tornBytes, damage, seal, soughtSeq } = verdict;
  if (damage !== undefined) findings.unshift({ kind: 'log', words: damage.message, line: damage.line });
  if (head !== undefined && (soughtSeq === undefined || (head.seq !== undefined && soughtSeq !== head.seq))) {
    findings.push({ kind: 'head', words: `the log never had the head ${head.seal}${head.seq === undefined ? '' : ` after event ${head.seq}`}: some of what came before it is not what it was, or is gone` });
  }
  const { good, bad } = verifyBlobs(directory);
  for (const [digest, { reason }] of bad) {
    const seq = fold.named.get(digest);
    findings.push({ kind: 'blob', digest, words: `${reason ?? `blob ${digest} cannot be read`}${seq === undefined ? '; no event names it' : `; event ${seq} names it`}` });
  }
  let unnamed = fold.hasCommits ? undefined : 0;
  for (const digest of good) if (unnamed !== undefined && !fold.named.has(digest)) unnamed++;
  for (const [digest, seq] of fold.named) {
    if (!good.has(digest) && !bad.has(digest)) findings.push({ kind: 'blob', digest, words: `blob ${digest} is gone or damaged; event ${seq} names it` });
  }
  return { findings, lastSeq, goodBytes, seal, sealedSeq: fold.sealedSeq, tornBytes, blobs: good.size + bad.size, unnamed, damage };
}

/**
 * Makes a session in the new or empty directory `to` of what `verification` found good in the one in `directory`; gives its last event. Throws
 * `SessionError` where there is something already, or nothing that could be saved.
 */
export function salvageSession(directory: string, to: string, { lastSeq, goodBytes }: Verification): number {
  if (lastSeq === undefined || goodBytes === undefined) throw new SessionError('ERR_NOT_A_SESSION', directory, 'not even its first line is good: there is nothing to save');
  salvage(directory, to, goodBytes);
  return lastSeq;
}

/** The events of a log folded anew, while they are checked. */
class Fold {
  /** Digests that events name, and the first event that does. */
  readonly named = new Map<Version, number>();
  sealedSeq = 0;
  hasCommits = false;
  private readonly findings: Finding[];
  private readonly state = initialState();
  private readonly checkpoint: ReturnType<typeof checkpointOf>;
  /** The events before those of a fork are in another log: without them there is no state. */
  private readonly isWhole: boolean;

  constructor(directory: string, findings: Finding[]) {
    const { header } = glance(directory);
    this.findings = findings;
    this.isWhole = header.parent === undefined;
    this.checkpoint = this.isWhole ? checkpointOf(directory, header) : undefined;
  }

  take(line: string, seq: number): Flaw | undefined {
    let event: Event;
    try {
      event = decodeEvent(line);
    } catch (error) {
      if (!(error instanceof CorruptEventError)) throw error;
      return error.cause === undefined ? { reason: 'bad event', detail: error.reason } : { reason: 'not JSON' };
    }
    for (const digest of blobsOf(event)) if (!this.named.has(digest)) this.named.set(digest, seq);
    if (event.op === 'commit') this.hasCommits = true;
    if (event.op === 'seal') this.sealedSeq = seq;
    if (!this.isWhole) return undefined;
    try {
      evolve(this.state, event);
    } catch (error) {
      return { reason: 'bad event', detail: error instanceof Error ? error.message : String(error) };
    }
    if (this.checkpoint?.seq === seq) this.compare(this.checkpoint.data);
    return undefined;
  }

  private compare(data: string): void {
    const found = this.difference(data);
    if (found === undefined) return;
    this.findings.push({ kind: 'checkpoint', words: `the checkpoint after event ${this.state.seq} tells another state than the events do: ${found}; without the file the session is opened from its events` });
  }

  private difference(data: string): string | undefined {
    try {
      const state = decodeState(data);
      // Of another version: nobody uses it.
      return state && differenceOf(this.state, state);
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
      throw error;
    }
  }
}
