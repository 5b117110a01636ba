import './markdown.css'

import MarkdownToJsx from 'markdown-to-jsx/react'
import type { ReactNode } from 'react'

/** The page's own headings are the first two levels. */
const heading = (Level: 'h3' | 'h4' | 'h5') =>
  function Heading({ children }: { children?: ReactNode }) {
    return <Level>{children}</Level>
  }

const [H3, H4, H5] = [heading('h3'), heading('h4'), heading('h5')]

const OPTIONS = {
  disableParsingRawHTML: true,
  overrides: {
    a: SafeLink,
    // A page loads nothing from another server.
    img: ({ alt, src }: { alt?: string; src?: string }) => <SafeLink href={src}>{alt === '' ? src : alt}</SafeLink>,
    input: ({ checked }: { checked?: boolean }) => <span>{checked ? '☑' : '☐'}</span>,
    h1: H3,
    h2: H4,
    h3: H5,
    h4: H5,
    h5: H5,
    h6: H5,
  },
} as const

/** Markdown as somebody wrote it, HTML in it as text. */
export default function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <MarkdownToJsx options={OPTIONS}>{text}</MarkdownToJsx>
    </div>
  )
}

const SAFE = /^(https?:|mailto:|\/(?!\/)|#)/i

function SafeLink({ href, children }: { href?: string | undefined; children?: ReactNode }) {
  if (href === undefined || !SAFE.test(href)) return <>{children}</>
  return (
    <a href={href} rel="noreferrer">
      {children}
    </a>
  )
}
