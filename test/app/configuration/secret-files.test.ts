import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import {
  pipelineSecret,
  secretSettings,
  withSecretFiles,
} from '../../../app/configuration/secret-files.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a secret setting in a file', () => {
  const directory = useTemporaryDirectory();
  const file = (content: string): string => {
    const path = join(directory(), `secret-${String(content.length)}`);
    writeFileSync(path, content);
    return path;
  };

  for (const name of secretSettings) {
    it(`is read for ${name}, without the line break at its end`, () => {
      const env = withSecretFiles({ [`${name}_FILE`]: file('a secret of 25 bytes here\n') });
      expect(env).to.deep.equal({ [name]: 'a secret of 25 bytes here' });
    });
  }

  it('reaches the configuration without a warning', () => {
    const env = withSecretFiles({ JWT_SECRET_KEY_FILE: file('JzqBWcj8nlGdmgS9MFIm0yYi2Zt4vUxV') });
    const { jwtSecretKey, warnings } = readConfiguration(env);
    expect(jwtSecretKey).to.equal('JzqBWcj8nlGdmgS9MFIm0yYi2Zt4vUxV');
    expect(warnings).to.deep.equal([]);
  });

  it('is rejected together with the setting itself', () => {
    const env = { SVC_ADMIN_SECRET: 'x', SVC_ADMIN_SECRET_FILE: file('y') };
    const fault =
      'SVC_ADMIN_SECRET_FILE is set together with SVC_ADMIN_SECRET; set only one of them';
    expect(() => withSecretFiles(env)).to.throw(fault);
  });

  it('is rejected when it is missing or empty', () => {
    expect(() => withSecretFiles({ JWT_SECRET_KEY_FILE: join(directory(), 'none') })).to.throw(
      /^JWT_SECRET_KEY_FILE names ".*none", which cannot be read \(ENOENT\)/,
    );
    expect(() => withSecretFiles({ JWT_SECRET_KEY_FILE: file('\n') })).to.throw('which is empty');
  });

  it('is read again for each step that uses it', () => {
    const path = file('first');
    const env = { SVC_SECRET_API_TOKEN_FILE: path };
    expect(pipelineSecret(env, 'API_TOKEN')).to.equal('first');
    writeFileSync(path, 'second\n');
    expect(pipelineSecret(env, 'API_TOKEN')).to.equal('second');
    expect(pipelineSecret(env, 'OTHER')).to.equal(undefined);
    expect(pipelineSecret({ ...env, SVC_SECRET_API_TOKEN: 'set' }, 'API_TOKEN')).to.equal('set');
  });
});
