import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import { allPages, answer, byCursor, client, page } from './client'
import type { Member, Project, Role, Token, User } from './types'

/** Prefix of every query on users: an action on a user makes all of them stale. */
export const USERS_KEY = ['users'] as const

/** All users with an account, by name. */
export const usersQuery = infiniteQueryOptions({
  queryKey: [...USERS_KEY, 'pages'],
  queryFn: ({ pageParam, signal }) =>
    answer(client.GET('/api/v1/users', { params: { query: page(pageParam) }, signal })),
  ...byCursor,
})

/** The same users, in one list. */
export const everybodyQuery = queryOptions({
  queryKey: [...USERS_KEY, 'all'],
  queryFn: ({ signal }) =>
    allPages<User>((cursor) => client.GET('/api/v1/users', { params: { query: page(cursor) }, signal })),
})

/** A user without a password can only sign in with tokens. */
export function createUser(wanted: { name: string; role: Role; password: string | null }) {
  return answer(client.POST('/api/v1/users', { body: wanted }))
}

/** Fields that are left out stay unchanged. */
export function changeUser({ id }: Pick<User, 'id'>, change: { role?: Role; enabled?: boolean; password?: string }) {
  return answer(client.PATCH('/api/v1/users/{user_id}', { params: { path: { user_id: id } }, body: change }))
}

export function userTokensQuery(user: string) {
  return queryOptions({
    queryKey: [...USERS_KEY, 'tokens', user],
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/users/{user_id}/tokens', { params: { path: { user_id: user } }, signal })),
  })
}

export function revokeUserToken(user: string, { id }: Token) {
  const path = { user_id: user, token_id: id }
  return answer(client.DELETE('/api/v1/users/{user_id}/tokens/{token_id}', { params: { path } }))
}

/** The projects that the user sees; administrators see all. */
export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  queryFn: ({ signal }) =>
    allPages<Project>((cursor) => client.GET('/api/v1/projects', { params: { query: page(cursor) }, signal })),
})

/** The members at a project, by name. A changed user makes this stale too. */
export function membersQuery(project: string) {
  return queryOptions({
    queryKey: [...USERS_KEY, 'members', project],
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/projects/{project}/members', { params: { path: { project } }, signal })),
  })
}

function at(project: string, { id }: Pick<Member, 'id'>) {
  return { params: { path: { project, user_id: id } } }
}

export function addMember(project: string, user: Pick<Member, 'id'>) {
  return answer(client.PUT('/api/v1/projects/{project}/members/{user_id}', at(project, user)))
}

export function removeMember(project: string, user: Pick<Member, 'id'>) {
  return answer(client.DELETE('/api/v1/projects/{project}/members/{user_id}', at(project, user)))
}

/** Only entries with exactly these words; a word that is not given matches every entry. */
export interface AuditFilter {
  actor?: string | undefined
  action?: string | undefined
  subject?: string | undefined
}

/** The entries of the audit log, the newest first. */
export function auditQuery(wanted: AuditFilter) {
  const given = Object.fromEntries(Object.entries(wanted).filter(([, word]) => word !== undefined))
  return infiniteQueryOptions({
    queryKey: ['audit', given],
    queryFn: ({ pageParam, signal }) => {
      const query = { ...given, ...page(pageParam) }
      return answer(client.GET('/api/v1/audit', { params: { query }, signal }))
    },
    ...byCursor,
  })
}
