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

/** For how long browsers keep what the page loads. Seconds. */
const KEPT = 86_400;

const STYLE = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** What the page loads from the package that shows descriptions, by its name there. */
const assets: Readonly<Record<string, string>> = {
  'swagger-ui.css': STYLE,
  'swagger-ui-bundle.js': SCRIPT,
};

/**
 * Serves the description of the interface, `GET /openapi.json`, and the page that shows it, `GET /docs`. The page loads
 * nothing but that description and files that this service has among its packages.
 */
export function serveDescription(
  app: Express,
  endpoints: readonly Endpoint[],
  about: {
    readonly version: string;
    readonly log: Log;
    /** The built-in ones. */
    readonly tools: readonly DescribedTool[];
    /** null: there are none in this process. */
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
    // Whoever never looks at the page needs none of it in memory.
    let content: Promise<Buffer> | undefined;
    servePlainly(
      app,
      `/docs/${name}`,
      async (response) => {
        content ??= readFile(require.resolve(`swagger-ui-dist/${name}`));
        response.set('Content-Type', type);
        response.set('Cache-Control', `public, max-age=${KEPT}`);
        response.send(await content);
      },
      ofPage,
    );
  }
}

/** Gives the description, made anew where other extensions are loaded than before. */
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
        // One that can't be described leaves the others as they are.
        describeInterface([...core, ...described], { version, tools });
        return described;
      } catch (error) {
        log.warn('endpoints of an extension can not be described', {
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

/** Packages stand beside the compiled service as they do beside its source. */
const require = createRequire(import.meta.url);

/** Addresses are relative, so that a proxy may put a prefix before them. */
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

/** The same at `/docs/`, from where all of it lies one step up. */
const pageBelow = page.replaceAll(/(?<=(?:href|src)=")(?!data:)/g, '../');

/** Without the validator, which is a service on the network. */
const start = `SwaggerUIBundle({
  url: (location.pathname.endsWith('/') ? '../' : '') + 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  validatorUrl: null,
});
`;
