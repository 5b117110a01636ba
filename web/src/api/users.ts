import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import { allPages, byCursor, page } from './paging'
import type { Role, Token, User } from './types'

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
