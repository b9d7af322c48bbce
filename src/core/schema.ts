import { FORMAT_VERSION, HEADER_TABLE, LINE_TABLES } from './format.ts';
import type { Table } from './format.ts';
import type { Schema } from './kind.ts';

/**
 * JSON Schema (draft 2020-12) of one line of a log, `crc` included: the header under `$defs.header`, every op under its name.
 * It says what a line may hold; that crcs, seals and the order of events are right is the store's to check.
 */
export const LOG_SCHEMA: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: `urn:palimpsest:log-line:${FORMAT_VERSION}`,
  title: 'A line of a palimpsest log',
  $comment: `format version ${FORMAT_VERSION}`,
  oneOf: ['header', ...LINE_TABLES.keys()].map((name) => ({ $ref: `#/$defs/${name}` })),
  $defs: Object.fromEntries(
    [['header', HEADER_TABLE] as const, ...LINE_TABLES].map(([name, table]) => [name, lineSchema(table)])),
};

function lineSchema(table: Table): Schema {
  const { properties, required, ...rest } = table.schema() as {
    readonly properties: { readonly [name: string]: Schema }; readonly required: readonly string[];
  };
  return {
    ...rest,
    properties: { ...properties, crc: { type: 'string', pattern: '^[0-9a-f]{8}$' } },
    required: [...required, 'crc'],
  };
}
