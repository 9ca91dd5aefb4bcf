import type { ClaimRule } from '../../domain/agents/claim-rules.ts';
import { effectiveScopes } from '../../api/access/namespace-admins.ts';
import type { PeopleSettings } from '../../api/people/people-settings.ts';
import { isJsonObject } from '../../domain/json.ts';
import { DEFAULT_NAMESPACE, NAMESPACE_PATTERN } from '../../domain/namespaces/namespace.ts';
import {
  ConfigurationError,
  quoted,
  secret,
  settingOf,
  webAddress,
  type Environment,
} from './setting-readers.ts';

/** The variables. */
export const peopleVariables = [
  'SVC_OIDC_ISSUER',
  'SVC_OIDC_CLIENT_ID',
  'SVC_OIDC_CLIENT_SECRET',
  'SVC_OIDC_SCOPES',
  'SVC_OIDC_CLAIMS',
  'SVC_OIDC_AUDIENCE',
] as const;

/** With this setting, anybody could act as the agent of a person, because that agent has no secret. */
const SECRETLESS = 'SVC_ALLOW_SECRETLESS';

/**
 * How people sign in with OpenID Connect; null without `SVC_OIDC_ISSUER`.
 * @throws ConfigurationError for settings that are missing, invalid or insecure
 */
export function peopleConfiguration(env: Environment, production: boolean): PeopleSettings | null {
  const issuer = issuerOf(env, production);
  if (issuer === null) {
    const stray = peopleVariables.find((each) => settingOf(env, each) !== undefined);
    if (stray === undefined) return null;
    throw new ConfigurationError(
      'SVC_OIDC_ISSUER',
      `is not set, but ${stray} is; set both or neither`,
    );
  }
  const required = (variable: string, what: string): string => {
    const value = settingOf(env, variable);
    if (value !== undefined) return value;
    throw new ConfigurationError(variable, `is not set; with SVC_OIDC_ISSUER it must be ${what}`);
  };
  if (production && webAddress(env, 'SVC_PUBLIC_URL')?.startsWith('https://') !== true) {
    const problem =
      'must be the https address of the page, to which the identity provider redirects';
    throw new ConfigurationError('SVC_PUBLIC_URL', problem);
  }
  if (settingOf(env, SECRETLESS) === 'true') {
    const problem =
      'is true; with SVC_OIDC_ISSUER it must be false, as agents of people have no secret';
    throw new ConfigurationError(SECRETLESS, problem);
  }
  const clientId = required('SVC_OIDC_CLIENT_ID', "this service's id at the provider");
  return {
    issuer,
    clientId,
    clientSecret: secret(env, 'SVC_OIDC_CLIENT_SECRET', { fromBytes: 1, toBytes: 4_096 }),
    scopes: scopesOf(env),
    rules: rulesIn(required('SVC_OIDC_CLAIMS', WANTED)),
    audience: audienceOf(env, clientId),
  };
}

/** The issuer as written, because tokens must contain exactly this string, including any final slash. */
function issuerOf(env: Environment, production: boolean): string | null {
  const variable = 'SVC_OIDC_ISSUER';
  const text = settingOf(env, variable);
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url?.protocol === 'http:' && isLoopback(url.hostname) && !production;
  if (url !== null && !/[?#@\s]/.test(text) && (url.protocol === 'https:' || isPlain)) return text;
  const allowed = production
    ? 'an https address'
    : 'an https address, or for tests an http address of this machine';
  const fault = `is ${quoted(text)}; it must be ${allowed}, such as https://login.example`;
  throw new ConfigurationError(variable, fault);
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);

function scopesOf(env: Environment): string {
  const variable = 'SVC_OIDC_SCOPES';
  const scopes = (settingOf(env, variable) ?? 'openid profile email').split(/\s+/);
  if (scopes.includes('openid')) return scopes.join(' ');
  throw new ConfigurationError(variable, 'lacks openid; it must be scopes separated by spaces');
}

function audienceOf(env: Environment, clientId: string): string | undefined {
  const variable = 'SVC_OIDC_AUDIENCE';
  const audience = settingOf(env, variable);
  if (audience !== clientId) return audience;
  const fault =
    'is the id of the client; it must be a different audience, because ID tokens name the client';
  throw new ConfigurationError(variable, fault);
}

/** The required content of `SVC_OIDC_CLAIMS`. */
const WANTED =
  'a JSON list of rules such as [{"claim":"groups","is":"operators","scopes":["runs:read"]}]';

function rulesIn(json: string): readonly ClaimRule[] {
  let rules: unknown;
  try {
    rules = JSON.parse(json);
  } catch {
    throw badRules(`${quoted(json)}, which is not JSON`);
  }
  if (!Array.isArray(rules) || rules.length === 0) throw badRules(quoted(json));
  return rules.map(ruleIn);
}

const badRules = (fault: string): ConfigurationError =>
  new ConfigurationError('SVC_OIDC_CLAIMS', `is ${fault}; it must be ${WANTED}`);

const ruleFields = ['claim', 'is', 'scopes', 'namespace'];
const SCOPE = /^[a-z0-9_:.*-]{1,100}$/;

/** @param at the number of the rule in the list */
function ruleIn(rule: unknown, at: number): ClaimRule {
  const wrong = (fault: string): ConfigurationError =>
    badRules(`a list whose rule ${at + 1} is invalid: ${fault}`);
  if (!isJsonObject(rule)) throw wrong('it is not an object');
  const surplus = Object.keys(rule).find((field) => !ruleFields.includes(field));
  if (surplus !== undefined) throw wrong(`${quoted(surplus)} is not a field of a rule`);
  const { claim: given, is, scopes, namespace } = rule;
  const claim = typeof given === 'string' ? [given] : given;
  if (claim !== undefined && !(isTexts(claim) && claim.length > 0)) {
    throw wrong('claim must be the name of a claim, or a list of names that leads to one');
  }
  if (is !== undefined && !['string', 'number', 'boolean'].includes(typeof is)) {
    throw wrong('is must be a string, a number or a boolean');
  }
  if (is !== undefined && claim === undefined) throw wrong('is needs a claim');
  if (!isTexts(scopes) || scopes.length === 0 || !scopes.every((each) => SCOPE.test(each))) {
    throw wrong('scopes must be a list of scopes such as "tasks:read"');
  }
  const isName = typeof namespace === 'string' && new RegExp(NAMESPACE_PATTERN).test(namespace);
  if (namespace !== undefined && !isName) {
    throw wrong('namespace must be 1 to 63 of a-z, 0-9 and -, beginning with a letter');
  }
  const place = isName ? namespace : DEFAULT_NAMESPACE;
  const useful = effectiveScopes(place, scopes);
  const useless = scopes.find((each) => !useful.includes(each));
  if (useless !== undefined) throw wrong(`${useless} concerns the whole service, not a namespace`);
  return { claim, is, scopes, namespace } as ClaimRule;
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
