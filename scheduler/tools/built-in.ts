import type { AllowedPrivate } from '../http/address-rules.ts';
import type { ProxySettings } from '../http/proxies.ts';
import { basicTools } from './basic-tools.ts';
import { createHttpTool } from './http-request.ts';
import { ToolRegistry } from './registry.ts';
import type { OfferedTools } from './worker-tools.ts';
import { waitingTools } from './waiting-tools.ts';
import { serviceTools, type ServiceActions } from './service-tools.ts';

/** A registry with all built-in tools. `close` ends their connections. */
export interface BuiltInTools {
  readonly registry: ToolRegistry;
  readonly close: () => Promise<void>;
}

/**
 * Creates the registry of a process.
 * @param options.actions implement `events.publish` and `tasks.run`
 * @param options.offered the tools of workers; default: none. All other options are for `http.request`
 */
export function createBuiltInTools(options: {
  readonly actions: ServiceActions;
  readonly offered?: OfferedTools;
  readonly allowPrivate: AllowedPrivate;
  readonly proxies?: ProxySettings;
  readonly userAgent?: string;
}): BuiltInTools {
  const { tool, close } = createHttpTool(options);
  const registry = new ToolRegistry([
    ...basicTools,
    ...waitingTools,
    tool,
    ...serviceTools(options.actions),
  ]);
  if (options.offered !== undefined) registry.addOffered(options.offered);
  return { registry, close };
}
