import { X509Certificate } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Instant } from '../../domain/clock.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { readTlsFiles } from '../starting/tls-files.ts';
import { fault, ok, warn, wordsOf, type Finding } from './finding.ts';

const DAY = 86_400_000;

/** A certificate should be renewed this many days before it expires. */
const RENEWAL_DAYS = 14;

const RENEW = 'renew it, and send SIGHUP to the service';

/** The settings that decide who can reach the port. */
type Listening = Pick<Configuration, 'tlsCertFile' | 'tlsKeyFile' | 'host' | 'trustProxy'>;

/**
 * Checks the certificate of HTTPS; without one, whether others can reach the port. No findings for plain HTTP on this
 * machine or behind a proxy.
 *
 * @param now milliseconds
 */
export function checkTls(configuration: Listening, now: Instant): readonly Finding[] {
  const { tlsKeyFile, host, trustProxy } = configuration;
  const check = 'TLS';
  try {
    const files = readTlsFiles(configuration);
    if (files === null || tlsKeyFile === undefined) {
      if (isOnThisMachine(host) || trustProxy !== 0) return [];
      const advice = 'set SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE, or SVC_TRUST_PROXY with a proxy';
      return [
        warn(
          check,
          `it speaks plain HTTP on ${host}: others on the network can read tokens`,
          advice,
        ),
      ];
    }
    return [checkDates(new X509Certificate(files.cert), now), ...checkKeyFile(tlsKeyFile)];
  } catch (error) {
    return [fault(check, wordsOf(error), 'fix the file, or chown it to the user of the service')];
  }
}

function checkDates({ validFrom, validTo }: X509Certificate, now: Instant): Finding {
  const check = 'TLS';
  const end = new Date(validTo);
  const date = end.toISOString().slice(0, 10);
  if (now < Date.parse(validFrom)) {
    return fault(check, `the certificate is not valid before ${validFrom}`, 'check the clock');
  }
  if (now >= end.getTime()) return fault(check, `the certificate expired on ${date}`, RENEW);
  const days = Math.floor((end.getTime() - now) / DAY);
  if (days < RENEWAL_DAYS) return warn(check, `the certificate expires on ${date}`, RENEW);
  return ok(check, `1.2 or later, the certificate is valid until ${date}`);
}

function checkKeyFile(path: string): readonly Finding[] {
  const { mode } = statSync(path);
  if ((mode & 0o007) === 0) return [];
  return [warn('TLS', `other users can open ${path}, the private key`, `chmod 600 ${path}`)];
}

const isOnThisMachine = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host.startsWith('127.');
