import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { BrowserSession, Callback, CurrentUser, Role, Scope, Token } from './types'

/** The permissions of each role, in rising order: each may do everything that the previous one may, and more. */
export const MAY = {
  viewer: 'reads the experiments of its projects and changes nothing',
  researcher: 'submits and changes experiments, and lets participants in',
  admin: 'has full access, including users and the audit log',
} as const satisfies Record<Role, string>

export const ROLES = Object.keys(MAY) as Role[]

/** The role that a form names; what reads only if it names none. */
export function roleOf(value: unknown): Role {
  return ROLES.find((role) => role === value) ?? 'viewer'
}

/** True if `role` includes `least`; the server checks the same. */
export function covers(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least)
}

/** The signed-in user. The role can change meanwhile. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/me', { signal })),
  staleTime: 60_000,
})

/** The user of the browser's session; undefined without a session or if the server does not answer. */
export function signedIn(): Promise<CurrentUser | undefined> {
  return answer(client.GET('/api/v1/me')).catch(() => undefined)
}

/** True if the user may only read; undefined until the server has answered. */
export function onlyReads(me: CurrentUser | undefined): boolean | undefined {
  return me && !covers(me.role, 'researcher')
}

export function changePassword(passwords: { current: string; password: string }) {
  return answer(client.PUT('/api/v1/me/password', { body: passwords }))
}

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/tokens', { signal })),
})

/** With `expires_seconds` null the token is valid until it is revoked. Only this answer holds the token's text. */
export function createToken(wanted: { name: string; scopes: Scope[]; expires_seconds: number | null }) {
  return answer(client.POST('/api/v1/tokens', { body: wanted }))
}

export function revokeToken({ id }: Token) {
  return answer(client.DELETE('/api/v1/tokens/{token_id}', { params: { path: { token_id: id } } }))
}

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/sessions', { signal })),
})

export function endSession({ id }: BrowserSession) {
  return answer(client.DELETE('/api/v1/sessions/{session_id}', { params: { path: { session_id: id } } }))
}

/** The least length of a password; the server requires the same. */
export const LEAST_PASSWORD = 12

/** The ways to sign in on this server besides name and password. */
export const signInQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/sign-in', { signal })),
  staleTime: Infinity,
})

/** Signs in with the admin token, with the token of a sign-in link, or with the name and password of an account. */
export function signIn(shown: { token: string } | { name: string; password: string }) {
  return answer(client.POST('/api/v1/session', { body: shown }))
}

/** Requests the address for signing in at the provider. */
export function beginAtProvider() {
  return answer(client.POST('/api/v1/sign-in/oidc'))
}

/** Signs in with the parameters that the provider sent the browser back with. */
export function signInFromProvider(callback: Callback) {
  return answer(client.POST('/api/v1/session/oidc', { body: callback }))
}

export function signOut() {
  return answer(client.DELETE('/api/v1/session'))
}
