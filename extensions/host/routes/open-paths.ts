import type { Extension } from '../extension.ts';
import type { HostSettings } from '../ports.ts';

/**
 * The paths of built-in extensions that the interface lets everybody call. Every other one needs a token.
 * `/static/` stands for all that lies below.
 */
const openPaths: Readonly<Record<string, readonly string[]>> = {
  observability: ['/metrics'],
  mcp_http: ['/meta'],
  webui: ['/', '/static/'],
};

/** Whether a request needs no token. @param rest what stands behind `/ext/<id>` */
export function isOpen(extension: Extension, rest: string, settings: HostSettings): boolean {
  return isListed(extension, rest) && !isClosedPage(extension, rest, settings);
}

/** Whether it is for the page, which `SVC_WEBUI_REQUIRE_AUTH` closes: people come there by their browsers. */
export function isClosedPage(extension: Extension, rest: string, settings: HostSettings): boolean {
  return settings.webuiRequireAuth && extension.id === 'webui' && isListed(extension, rest);
}

function isListed(extension: Extension, rest: string): boolean {
  if (extension.source !== 'builtin') return false;
  const open = openPaths[extension.id] ?? [];
  return open.some((path) => (path === '/static/' ? rest.startsWith(path) : rest === path));
}
