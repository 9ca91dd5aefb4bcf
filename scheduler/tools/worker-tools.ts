import { argumentCheck } from '../../domain/pipeline/arguments.ts';
import type { RegisteredTool } from './registry.ts';
import { ToolError } from './tool.ts';

/** A tool, as described by workers. */
export interface DescribedTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly schema: object;
  /** When this schema replaced another one, ISO 8601. */
  readonly schema_since: string;
}

/** The tools that workers offer, or have offered, by the namespace of their agent. */
export interface OfferedTools {
  tool(namespace: string, name: string): DescribedTool | undefined;
  tools(namespace: string): Iterable<DescribedTool>;
  /** Changes with each registered tool. */
  readonly revision: number;
}

const registered = new WeakMap<DescribedTool, RegisteredTool>();

/** A tool of workers. Its steps wait for a worker's result; nobody can call it directly. */
export function workerTool(offered: DescribedTool): RegisteredTool {
  const known = registered.get(offered);
  if (known !== undefined) return known;
  const { name, description, schema, schema_since: schemaSince } = offered;
  const run = (): never => {
    const message = `workers run ${name}, and only for steps of runs; create a task for it`;
    throw new ToolError(message, { retryable: false });
  };
  const tool = { name, description, schema, schemaSince, isExternal: true, run };
  const made = { tool, check: argumentCheck(schema) };
  registered.set(offered, made);
  return made;
}
