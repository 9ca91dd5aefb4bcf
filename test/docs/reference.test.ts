import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints } from '../../api/app.ts';
import { hostEndpoints } from '../../api/endpoints/extension-endpoints.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';
import { errorStatuses } from '../../api/errors.ts';
import { readConfiguration, type Configuration } from '../../app/configuration/configuration.ts';
import { proxyVariables } from '../../app/configuration/http-settings.ts';
import { settings } from '../../app/configuration/known-settings.ts';
import {
  sharingVariables,
  type SharingSettings,
} from '../../app/configuration/sharing-settings.ts';
import { refusalCodes } from '../../domain/errors.ts';
import { eventStoreErrorCodes } from '../../domain/event-store.ts';
import { catalogue } from '../../domain/events/catalogue.ts';
import { streamKinds } from '../../domain/streams.ts';
import { counters, gauges, histograms } from '../../observability/metric-catalogue.ts';
import { readModelErrorCodes } from '../../projections/read-model.ts';
import { builtInEndpoints } from '../support/response-check.ts';
import { projectRoot } from '../support/project-root.ts';
import { codeIn, read, rowsOf } from './documents.ts';

/** `/tasks/:id` as documents write it: `/tasks/{id}`. */
const written = (path: string): string => path.replaceAll(/:([a-z_]+)/g, '{$1}');

describe('the reference of the HTTP interface', () => {
  const folder = 'docs/reference';
  const pages = readdirSync(join(projectRoot, folder)).filter((name) => name.endsWith('.md'));
  const observing = [...unlistedEndpoints, ...hostEndpoints, ...builtInEndpoints];
  const offered = [...endpoints, ...observing].flatMap(({ method, paths }) =>
    paths.map((path) => `${method.toUpperCase()} ${written(path)}`),
  );

  it('has headings for exactly the available endpoints', () => {
    const headings = pages.flatMap((page) =>
      [...read(`${folder}/${page}`).matchAll(/^### `([A-Z]+ .+)`$/gm)].map(([, name = '']) => name),
    );
    expect(headings.length).to.be.greaterThan(50);
    expect(headings.filter((heading) => !offered.includes(heading))).to.deep.equal([]);
    expect(new Set(headings).size).to.equal(headings.length);
  });
});

describe('the tables of settings', () => {
  const text = read('docs/reference/configuration.md');
  const rows = rowsOf(text.split('## All settings')[1]?.split('\n## ')[0] ?? '');
  const defaults = new Map(rows.map(([name = '', value = '']) => [name, value]));
  const keys = ['JWT_SECRET_KEY', 'JWT_PREVIOUS_SECRET_KEY', 'NODE_ENV', 'SVC_SECRET_<NAME>'];

  it('have every setting, and no other', () => {
    const named = [...defaults.keys()].filter((name) => /^[A-Z]/.test(name));
    expect(named).to.have.members([...settings, ...keys, ...proxyVariables]);
  });

  it('have their defaults', () => {
    const configuration = readConfiguration({});
    const { artifacts } = readConfiguration({ SVC_ARTIFACTS_S3_BUCKET: 'any' });
    const oidc = { SVC_OIDC_ISSUER: 'https://a.example', SVC_OIDC_CLIENT_ID: 'b' };
    const claims = { SVC_OIDC_CLAIMS: '[{"scopes":["runs:read"]}]' };
    const { people } = readConfiguration({ ...oidc, ...claims });
    const { sharing } = configuration;
    const shared = sharingVariables.map(
      (name) => [name, sharing[fieldOf(name) as unknown as keyof SharingSettings]] as const,
    );
    const vault = { SVC_VAULT_ADDR: 'http://a', SVC_VAULT_TOKEN: 'any' };
    const { secrets } = readConfiguration(vault);
    const nested = new Map<string, unknown>([
      ...shared,
      ['SVC_OIDC_SCOPES', people?.scopes],
      ['SVC_HTTP_ALLOW_PRIVATE', configuration.http.allowPrivate],
      ['SVC_EXT_PLUGINS', configuration.extPlugins === 'all' ? '*' : configuration.extPlugins],
      ['SVC_ARTIFACTS_MAX_BYTES', artifacts.maxBytes],
      ['SVC_ARTIFACTS_S3_REGION', artifacts.s3?.region],
      ['SVC_ARTIFACTS_S3_PREFIX', artifacts.s3?.prefix],
      ['SVC_VAULT_MOUNT', secrets.vault?.mount],
      ['SVC_VAULT_PATH', secrets.vault?.path],
    ]);
    const wrong = [...settings, 'JWT_SECRET_KEY', 'JWT_PREVIOUS_SECRET_KEY'].filter((name) => {
      const value = nested.has(name) ? nested.get(name) : configuration[fieldOf(name)];
      const text = Array.isArray(value)
        ? value.join(',')
        : String((value as string | number | boolean | undefined) ?? 'none');
      return defaults.get(name) !== text;
    });
    expect(wrong).to.deep.equal([]);
  });

  /** `SVC_MAX_BODY_BYTES` is read into `maxBodyBytes`. */
  function fieldOf(name: string): keyof Configuration {
    const words = name.replace(/^SVC_/, '').toLowerCase().replace('data_dir', 'data_directory');
    return words.replaceAll(/_([a-z])/g, (_, letter: string) =>
      letter.toUpperCase(),
    ) as keyof Configuration;
  }
});

describe('the list of errors', () => {
  const rows = rowsOf(read('docs/reference/errors.md'));

  it('has every code with its status', () => {
    const listed = rows.filter(([status = '']) => /^\d{3}$/.test(status));
    const codes = listed.map(([status, code]) => [code, Number(status)]);
    expect(Object.fromEntries(codes)).to.deep.equal({ ...errorStatuses });
  });

  it('has the codes of the domain, the log and the views', () => {
    const codes = rows.map(([code = '']) => code);
    expect(codes).to.include.members([
      ...refusalCodes,
      ...eventStoreErrorCodes,
      ...readModelErrorCodes,
    ]);
  });
});

describe('the table of streams', () => {
  const text = read('docs/explanation/architecture.md');

  it('has every type of event', () => {
    const named = codeIn(text);
    expect(Object.keys(catalogue).filter((type) => !named.includes(type))).to.deep.equal([]);
  });

  it('has every kind of stream', () => {
    const listed = rowsOf(text).map(([stream = '']) => stream.split('-', 1)[0]);
    expect(listed).to.include.members(streamKinds());
  });
});

describe('the table of metrics', () => {
  it('has every metric with its labels', () => {
    const rows = rowsOf(read('docs/reference/metrics.md'));
    const missing = Object.entries({ ...counters, ...gauges, ...histograms })
      .filter(
        ([name, { labels }]) =>
          !rows.some(
            ([names = '', listed = '']) =>
              names.split(/[`, ]+/).includes(name) &&
              labels.every((label) => listed.includes(label)),
          ),
      )
      .map(([name]) => name);
    expect(missing).to.deep.equal([]);
  });
});
