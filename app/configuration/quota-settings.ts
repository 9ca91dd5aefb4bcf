import { NAMESPACE_PATTERN } from '../../domain/namespaces/namespace.ts';
import { quotasFault, type QuotaSettings } from '../../domain/namespaces/quotas.ts';
import { ConfigurationError, quoted, settingOf, type Environment } from './setting-readers.ts';

const variable = 'SVC_QUOTAS';
const namespaceName = new RegExp(NAMESPACE_PATTERN);

/**
 * `SVC_QUOTAS`: quotas by namespace as JSON, `*` for all others; undefined if it is not set.
 * @throws ConfigurationError for other content
 */
export function quotaSettings(env: Environment): QuotaSettings | undefined {
  const text = settingOf(env, variable);
  if (text === undefined) return undefined;
  const parsed = parse(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw invalid(text);
  for (const [name, quotas] of Object.entries(parsed)) {
    if (name !== '*' && !namespaceName.test(name)) {
      const fault = `names ${quoted(name)}; it must be a namespace, or * for all others`;
      throw new ConfigurationError(variable, fault);
    }
    const fault = quotasFault(quotas);
    if (fault !== null) throw new ConfigurationError(variable, `is bad for ${name}: ${fault}`);
  }
  return parsed as QuotaSettings;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw invalid(text);
  }
}

function invalid(text: string): ConfigurationError {
  const allowed = 'a JSON object of namespaces, such as {"team-a": {"tasks": 100}}';
  return new ConfigurationError(variable, `is ${quoted(text)}; it must be ${allowed}`);
}
