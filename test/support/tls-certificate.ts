/**
 * A certificate for tests alone, until 2120, that vouches for itself: of `secure.example`, `proxy.example` and 127.0.0.1.
 * Its key is no secret.
 */
export const testCertificate = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7kNFebBB/Bvc8VEs
4JhJqiGUJJmOD4VYRlgL6z724WWhRANCAARRmlFpj1ftd+9vvR/ARlnsA4PWTb+n
Ig+I5cPlKSF+3/zd9TyM1PgfFdRXJCRnACJg/hK3K9bSmLhtb9FRv956
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBUTCB+KADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBHRlc3QwIBcN
MjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBHRlc3Qw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARRmlFpj1ftd+9vvR/ARlnsA4PWTb+n
Ig+I5cPlKSF+3/zd9TyM1PgfFdRXJCRnACJg/hK3K9bSmLhtb9FRv956o0MwQTAu
BgNVHREEJzAlgg5zZWN1cmUuZXhhbXBsZYINcHJveHkuZXhhbXBsZYcEfwAAATAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDAZ7OYkHgUr8lvow7N
4+PnqqdgaBwpFSmBD0vTEHoXEQIgXqkiHdy4W2eSUQQU+Xstfhd1/pn5HYyF1qDy
vmxmuQw=
-----END CERTIFICATE-----
`,
};
