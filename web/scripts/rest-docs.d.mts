import type { Plugin } from 'vite'

export function isOfRestDocs(id: string): boolean
export function placed(extension: string): (file: { name?: string; names?: string[] }) => string
export function restDocs(): Plugin
