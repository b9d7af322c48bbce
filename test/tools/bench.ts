import { observationPolicy } from '../../src/index.ts';
import { tools, type Tools, type ToolResult } from '../../src/tools/index.ts';
import { withGround, type Ground } from '../policy/ground.ts';

/** Does `body` with the tools of `ann`, guarded, over a lower that holds `tree`. */
export function withTools(tree: Readonly<Record<string, string | Buffer>>, body: (kit: Tools, ground: Ground) => void | Promise<void>): Promise<void> {
  return withGround(tree, (ground) => {
    ground.overlay.use(observationPolicy());
    return body(tools(ground.overlay.as('ann')), ground);
  });
}

/** The code and the words of an answer. */
export function said({ code, text }: ToolResult): [string | undefined, string] {
  return [code, text];
}
