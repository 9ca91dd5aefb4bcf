import type { Router } from 'express';
import type { Log, LogFields } from '../../observability/telemetry.ts';
import {
  ExtensionError,
  badInput,
  type BackgroundAccess,
  type Capability,
  type CoreClient,
  type EventAccess,
  type ExtensionCaller,
  type ExtensionContext,
  type ExtensionLog,
  type SocketHandler,
  type StreamAccess,
  type ToolAccess,
} from '../contract.ts';
import type { Extension } from './extension.ts';
import type { HostDependencies, HttpPort } from './ports.ts';

/** What an extension's context is put together from. */
export interface ContextParts {
  readonly routes: Router;
  readonly tools: ToolAccess;
  readonly events: EventAccess;
  readonly streams: StreamAccess;
  readonly background: BackgroundAccess;
  readonly callerOf: (request: object) => ExtensionCaller | null;
  readonly innerFor: HttpPort['innerFor'];
}

/** A context that holds what was granted, and refuses the rest. */
export function createContext(
  extension: Extension,
  dependencies: Pick<HostDependencies, 'telemetry' | 'settings' | 'service' | 'core' | 'agents'>,
  parts: ContextParts,
): ExtensionContext {
  const need = (capability: Capability): void => needed(extension, capability);
  const needOne = (...wanted: readonly Capability[]): void => {
    if (!wanted.some((each) => extension.has(each))) need(wanted[0] ?? 'ROUTES');
  };
  return Object.freeze({
    info: Object.freeze({ ...extension.info }),
    capabilities: Object.freeze([...extension.granted]),
    log: logOf(extension, dependencies.telemetry.log),
    config: configOf(extension, dependencies.settings.extensionSettings),
    service: dependencies.service,
    core: coreOf(extension, dependencies, parts.innerFor),
    get routes(): Router {
      need('ROUTES');
      return parts.routes;
    },
    websocket(path: string, handler: SocketHandler): void {
      need('ROUTES');
      const fault = /^[A-Za-z0-9_.~-]+(\/[A-Za-z0-9_.~-]+)*$/.test(path) ? null : 'is no path';
      if (fault !== null) throw badInput('path', fault);
      extension.sockets.set(path, handler);
    },
    callerOf(request: object): ExtensionCaller | null {
      need('ROUTES');
      return parts.callerOf(request);
    },
    get toolRegistry(): ToolAccess {
      need('TOOLS');
      return parts.tools;
    },
    get events(): EventAccess {
      needOne('EVENTS_SUB', 'EVENTS_PUB');
      return parts.events;
    },
    get streams(): StreamAccess {
      needOne('EVENTS_SUB', 'EVENTS_PUB');
      return parts.streams;
    },
    get background(): BackgroundAccess {
      need('BACKGROUND_TASKS');
      return parts.background;
    },
  });
}

/** @throws ExtensionError `forbidden` where a capability was not granted */
export function needed(extension: Extension, capability: Capability): void {
  if (extension.has(capability)) return;
  throw new ExtensionError('forbidden', `this needs the capability ${capability}`, {
    required_capability: capability,
    granted_capabilities: extension.granted,
  });
}

function logOf(extension: Extension, log: Log): ExtensionLog {
  const { id } = extension;
  const at =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}): void =>
      log[level](message, { ...fields, extension: id });
  return Object.freeze({
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  });
}

/** `SVC_EXT_<ID>_<NAME>`; in `<ID>` a hyphen is written as `_`. */
function configOf(
  extension: Extension,
  settings: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const prefix = `SVC_EXT_${extension.id.toUpperCase().replaceAll('-', '_')}_`;
  const own = Object.entries(settings)
    .filter(([name]) => name.startsWith(prefix) && name.length > prefix.length)
    .map(([name, value]) => [name.slice(prefix.length).toLowerCase(), value] as const);
  return Object.freeze(Object.fromEntries(own));
}

function coreOf(
  extension: Extension,
  { core, agents }: Pick<HostDependencies, 'core' | 'agents'>,
  innerFor: ContextParts['innerFor'],
): CoreClient {
  return Object.freeze({
    async request(method, path, { onBehalfOf, ...options } = {}) {
      if (onBehalfOf === undefined) {
        const token =
          options.token === undefined ? await agents.tokenOf(extension.id) : options.token;
        return core.request(method, path, { ...options, token });
      }
      const { token = onBehalfOf.headers.authorization ?? null } = options;
      const inner = innerFor(onBehalfOf);
      const headers = { ...options.headers, ...inner.headers };
      try {
        return await core.request(method, path, { ...options, token, headers });
      } finally {
        inner.over();
      }
    },
  } satisfies CoreClient);
}
