/** A lamp that wobbles, as a file: something to look at in a new environment. */

const lamp = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 280 168" width="840" height="504"><rect width="280" height="168" fill="#DCE6DD"/><rect y="118" width="280" height="50" fill="#C98F5A"/><rect y="118" width="280" height="5" fill="#B47A46"/><path d="M118 46 176 20l26 44-66 26z" fill="#0F6B4F"/><path d="m136 90 66-26 4 9-63 26z" fill="#F7C873"/><path d="M143 99 206 73l38 45H110z" fill="#F7DDA6" opacity=".55"/><path d="m127 58-35 34 18 24" fill="none" stroke="#5B3A20" stroke-width="6" stroke-linecap="round" stroke-linejoin="round"/><rect x="86" y="111" width="48" height="9" rx="4.5" fill="#5B3A20"/><circle cx="92" cy="92" r="6" fill="#3E2714"/><rect x="22" y="78" width="34" height="40" rx="4" fill="#E8752F"/><path d="M39 78c-14-8-16-24-10-34 8 6 12 16 10 34Zm2 0c12-6 18-18 15-30-9 4-15 14-15 30Z" fill="#2F7D5C"/><rect x="222" y="94" width="36" height="24" rx="3" fill="#F4F7F5"/><rect x="222" y="100" width="36" height="4" fill="#57D0A3"/></svg>`;

export const lampSize = { width: 840, height: 504 };

export async function lampPicture(): Promise<File> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(lamp)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement('canvas'), lampSize);
  canvas.getContext('2d')!.drawImage(image, 0, 0, lampSize.width, lampSize.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
  if (!blob) throw new Error('The browser draws no picture.');
  return new File([blob], 'lamp.png', { type: 'image/png' });
}
