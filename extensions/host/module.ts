import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { ExtensionModule } from '../contract.ts';

/**
 * The module of an extension; run from its sources, a built-in one's still ends in `.ts`.
 * @throws Error for one that is not there or exports no function `setup`; whatever it throws itself
 */
export async function importModule(path: string): Promise<ExtensionModule> {
  const source = path.replace(/\.js$/, '.ts');
  const file = !existsSync(path) && existsSync(source) ? source : path;
  if (!existsSync(file)) throw new Error('its module is not there');
  const module = (await import(pathToFileURL(file).href)) as Partial<ExtensionModule>;
  if (typeof module.setup !== 'function') throw new Error('its module exports no function setup');
  return module as ExtensionModule;
}
