import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Express } from 'express';
import type { JsonObject } from '../../domain/json.ts';
import type { Log } from '../../observability/telemetry.ts';
import type { DescribedTool } from '../dependencies.ts';
import type { Endpoint } from '../endpoint.ts';
import {
  endpointsOf,
  hostEndpoints,
  type DescribingExtension,
} from '../endpoints/extension-endpoints.ts';
import { servePlainly } from '../serving/plain-paths.ts';
import { describeInterface } from './openapi.ts';
import { pageHeaders } from '../serving/security-headers.ts';
import { sendJson } from '../serving/sending.ts';
import { unlistedEndpoints } from './unlisted-endpoints.ts';

/** Cache lifetime of the page's files in browsers. Seconds. */
const CACHE_SECONDS = 86_400;

const STYLE = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** Files of swagger-ui-dist that the page loads, with their media types. */
const assets: Readonly<Record<string, string>> = {
  'swagger-ui.css': STYLE,
  'swagger-ui-bundle.js': SCRIPT,
};

/**
 * Serves `GET /openapi.json` and the page that shows it, `GET /docs`. The page loads nothing from other servers.
 */
export function serveDescription(
  app: Express,
  endpoints: readonly Endpoint[],
  about: {
    readonly version: string;
    readonly log: Log;
    /** The built-in tools. */
    readonly tools: readonly DescribedTool[];
    /** null without extensions in this process. */
    readonly extensions: { described(): readonly DescribingExtension[] } | null;
  },
): void {
  const describe = describer(endpoints, about);
  servePlainly(app, '/openapi.json', (response) => sendJson(response, 200, describe()));
  const ofPage = { page: true };
  servePlainly(
    app,
    '/docs',
    (response) => {
      response.set(pageHeaders());
      response.type('html').send(response.req.path.endsWith('/') ? pageBelow : page);
    },
    ofPage,
  );
  servePlainly(
    app,
    '/docs/start.js',
    (response) => void response.set('Content-Type', SCRIPT).send(start),
    ofPage,
  );
  for (const [name, type] of Object.entries(assets)) {
    // Read on first use: most processes never serve the page.
    let content: Promise<Buffer> | undefined;
    servePlainly(
      app,
      `/docs/${name}`,
      async (response) => {
        content ??= readFile(require.resolve(`swagger-ui-dist/${name}`));
        response.set('Content-Type', type);
        response.set('Cache-Control', `public, max-age=${CACHE_SECONDS}`);
        response.send(await content);
      },
      ofPage,
    );
  }
}

/** Returns a function that builds the description again whenever the loaded extensions have changed. */
function describer(
  endpoints: readonly Endpoint[],
  { version, log, tools, extensions }: Parameters<typeof serveDescription>[2],
): () => JsonObject {
  const core = [...endpoints, ...unlistedEndpoints];
  let made: { readonly of: string; readonly description: JsonObject } | undefined;
  return () => {
    const loaded = extensions?.described() ?? [];
    const of = loaded.map(({ id }) => id).join(' ');
    if (made?.of === of) return made.description;
    const theirs = loaded.flatMap((extension) => {
      try {
        const described = endpointsOf(extension, core);
        // An extension that cannot be described must not affect the others.
        describeInterface([...core, ...described], { version, tools });
        return described;
      } catch (error) {
        log.warn('could not describe the endpoints of an extension', {
          extension: extension.id,
          error,
        });
        return [];
      }
    });
    const host = extensions === null ? [] : hostEndpoints;
    const description = describeInterface([...core, ...host, ...theirs], { version, tools });
    made = { of, description };
    return description;
  };
}

const require = createRequire(import.meta.url);

/** Addresses are relative, so that a proxy may add a prefix. */
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Task scheduling service: HTTP interface</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script defer src="docs/swagger-ui-bundle.js"></script>
<script defer src="docs/start.js"></script>
</head>
<body>
<main id="docs"></main>
<noscript>This page needs scripts. The description itself: <a href="openapi.json">openapi.json</a></noscript>
</body>
</html>
`;

/** The same at `/docs/`, one level deeper. */
const pageBelow = page.replaceAll(/(?<=(?:href|src)=")(?!data:)/g, '../');

/** Without the validator, which is an external service. */
const start = `SwaggerUIBundle({
  url: (location.pathname.endsWith('/') ? '../' : '') + 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  validatorUrl: null,
});
`;
