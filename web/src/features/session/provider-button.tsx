import { useMutation, useQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { beginAtProvider, signInQuery } from '@/api/sign-in'
import { noteReturn } from '@/lib/sign-in-address'
import { ProblemNotice } from '@/lib/ui/notice'

/** A button to sign in at the service's provider, which leads back to this page. */
export function ProviderButton() {
  const { data: ways } = useQuery(signInQuery)
  const begin = useMutation({
    mutationFn: beginAtProvider,
    onSuccess: ({ url }) => {
      noteReturn(window.location, window.sessionStorage)
      window.location.assign(url)
    },
  })
  if (!ways?.provider) return null
  return (
    <>
      <button
        type="button"
        className="button primary"
        disabled={begin.isPending}
        onClick={() => {
          begin.mutate()
        }}
      >
        Sign in with {ways.provider}
      </button>
      {begin.error && <ProblemNotice problem={toProblem(begin.error)} />}
      <p className="sign-in-or muted small">or with an account on this server</p>
    </>
  )
}
