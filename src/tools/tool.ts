import { FsError, type GuardedFiles } from '../index.ts';

/** JSON Schema of a tool's input. */
export interface InputSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, PropertySchema>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

/** JSON Schema of one parameter. */
export interface PropertySchema {
  readonly type: 'string' | 'integer' | 'boolean' | 'array' | 'object';
  readonly description: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly minItems?: number;
  readonly items?: Omit<PropertySchema, 'description'> | InputSchema;
}

/** What a tool answers: words for a model, and the same as data for a program. */
export interface ToolAnswer {
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An answer that may be a refusal: then `code` says which, and `text` why and what to do about it. */
export interface ToolResult extends ToolAnswer {
  readonly isError: boolean;
  readonly code?: string;
}

/** What a model may call. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  /** Does it. Throws `FsError`, with the remedy in its message, or `ToolInputError`; then nothing has changed. */
  execute(input: unknown): ToolAnswer;
  /** The same; never throws. A fault that is no refusal is FS_IO_ERROR, and says nothing of its cause. */
  call(input: unknown): ToolResult;
}

/** The input of a call is not what the tool's schema says. */
export class ToolInputError extends Error {
  override readonly name = 'ToolInputError';
  readonly code: 'TOOL_BAD_INPUT' | 'TOOL_UNKNOWN';

  constructor(message: string, code: 'TOOL_BAD_INPUT' | 'TOOL_UNKNOWN' = 'TOOL_BAD_INPUT') {
    super(message);
    this.code = code;
  }
}

/** What every tool works on. */
export interface Bench {
  readonly files: GuardedFiles;
  readonly limits: Limits;
}

/** Bounds of what one answer holds; what is beyond is said. */
export interface Limits {
  /** Lines of a file that one read shows. */
  readonly lines: number;
  /** Characters of a line. */
  readonly lineCharacters: number;
  /** Bytes of a file that one read shows. */
  readonly bytes: number;
  /** Entries of a listing or a search. */
  readonly entries: number;
}

/** A tool from its parts; what `act` is given has the form that the schema says. */
export function toolOf(parts: {
  name: string; description: string; properties: InputSchema['properties']; required: readonly string[]; act: (input: never) => ToolAnswer;
}): Tool {
  const { name, description, properties, required, act } = parts;
  const inputSchema: InputSchema = { type: 'object', properties, required, additionalProperties: false };
  const execute = (input: unknown): ToolAnswer => {
    checkInput(name, '', input, inputSchema);
    return act(input as never);
  };
  return { name, description, inputSchema, execute, call: (input) => resultOf(() => execute(input)) };
}

/** What `act` answers; or its refusal as an answer. */
export function resultOf(act: () => ToolAnswer): ToolResult {
  try {
    return { ...act(), isError: false };
  } catch (error) {
    if (error instanceof FsError) {
      const { code, message, detail } = error;
      return { text: detail === undefined ? message : `${message} (${detail})`, data: { code, ...(detail === undefined ? undefined : { detail }) }, isError: true, code };
    }
    if (error instanceof ToolInputError) return { text: error.message, data: { code: error.code }, isError: true, code: error.code };
    return { text: 'the tool failed: input/output error', data: { code: 'FS_IO_ERROR' }, isError: true, code: 'FS_IO_ERROR' };
  }
}

/** Throws `ToolInputError` naming what of `input` is not as the schema says. */
function checkInput(tool: string, prefix: string, input: unknown, schema: InputSchema): void {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw new ToolInputError(`${tool}: ${prefix === '' ? 'the input' : `"${prefix.slice(0, -1)}"`} has to be an object`);
  for (const name of schema.required) {
    if ((input as Record<string, unknown>)[name] === undefined) throw new ToolInputError(`${tool}: "${prefix}${name}" is missing`);
  }
  for (const [name, value] of Object.entries(input)) {
    const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (property === undefined) throw new ToolInputError(`${tool}: there is no "${prefix}${name}"; there are ${Object.keys(schema.properties).join(', ')}`);
    if (value !== undefined) checkValue(tool, prefix + name, value, property);
  }
}

function checkValue(tool: string, name: string, value: unknown, schema: Omit<PropertySchema, 'description'>): void {
  const refuse = (wanted: string): never => {
    throw new ToolInputError(`${tool}: "${name}" has to be ${wanted}`);
  };
  switch (schema.type) {
    case 'string':
      if (typeof value !== 'string') refuse('a string');
      if (schema.enum !== undefined && !schema.enum.includes(value as string)) refuse(`one of ${schema.enum.join(', ')}`);
      return;
    case 'integer':
      if (!Number.isSafeInteger(value)) refuse('a whole number');
      if (schema.minimum !== undefined && (value as number) < schema.minimum) refuse(`at least ${schema.minimum}`);
      return;
    case 'boolean':
      if (typeof value !== 'boolean') refuse('true or false');
      return;
    case 'array': {
      if (!Array.isArray(value)) return refuse('a list');
      if (value.length < (schema.minItems ?? 0)) refuse(`a list of at least ${schema.minItems}`);
      const { items } = schema;
      for (const [at, item] of (value as unknown[]).entries()) {
        if (items === undefined) continue;
        if ('properties' in items) checkInput(tool, `${name}[${at}].`, item, items);
        else checkValue(tool, `${name}[${at}]`, item, items);
      }
      return;
    }
    case 'object':
      if (typeof value !== 'object' || value === null) refuse('an object');
  }
}
