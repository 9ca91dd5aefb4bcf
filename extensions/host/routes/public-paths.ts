import type { Extension } from '../extension.ts';
import type { HostSettings } from '../ports.ts';

/** Paths of built-in extensions that need no token. `/static/` covers everything below it. */
const PUBLIC_PATHS: Readonly<Record<string, readonly string[]>> = {
  observability: ['/metrics'],
  mcp_http: ['/meta'],
  webui: ['/', '/static/'],
};

/** Whether a request needs no token. @param subpath below `/ext/<id>` */
export function isPublic(extension: Extension, subpath: string, settings: HostSettings): boolean {
  return isListed(extension, subpath) && !isProtectedPage(extension, subpath, settings);
}

/** Whether `SVC_WEBUI_REQUIRE_AUTH` protects the path, which browsers open directly. */
export function isProtectedPage(
  extension: Extension,
  subpath: string,
  settings: HostSettings,
): boolean {
  return settings.webuiRequireAuth && extension.id === 'webui' && isListed(extension, subpath);
}

function isListed(extension: Extension, subpath: string): boolean {
  if (extension.source !== 'builtin') return false;
  const paths = PUBLIC_PATHS[extension.id] ?? [];
  return paths.some((path) => (path === '/static/' ? subpath.startsWith(path) : subpath === path));
}
